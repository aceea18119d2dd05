// The environment variables of the library, read once.
#pragma once

#include <string>

namespace moe {

// MOE_KERNEL: the kernel that every plan is forced onto, or empty.
const std::string& forced_kernel();

// MOE_NUM_THREADS, or 0 where it is unset or no positive number.
int default_num_threads();

}  // namespace moe
