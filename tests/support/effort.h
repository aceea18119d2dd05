// How much work a test may do: sanitizers and emulated processors slow the same work down tenfold
// and more.
#pragma once

#include <algorithm>
#include <cstdint>

namespace test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(MOE_TEST_EMULATED)
inline constexpr bool kSlow = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSlow = true;
#else
inline constexpr bool kSlow = false;
#endif
#else
inline constexpr bool kSlow = false;
#endif
inline constexpr bool kSanitized = kSlow;

// `count` repetitions, a tenth of them (at least one) where they are slow.
constexpr int64_t effort(int64_t count) { return kSlow ? std::max<int64_t>(1, count / 10) : count; }

}  // namespace test
