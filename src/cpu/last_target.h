// Which kernel ran, for the tests that prove that a forced kernel is the one that ran, and nothing
// else.
#pragma once

#include <atomic>

namespace moe::cpu {

// The instruction set of the kernel that ran a chunk last, "portable" or Highway's name.
inline std::atomic<const char*> last_target{nullptr};

inline void note_target(const char* name) { last_target.store(name, std::memory_order_relaxed); }

}  // namespace moe::cpu
