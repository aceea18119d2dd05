// Whether stores should pass the caches by.
#pragma once

#include <cstdint>

#include "cpu/caches.h"

namespace moe::cpu {

// They should when the output does not fit the caches of the threads that write it, and when
// elements lie on their own boundaries, so that some element of a row begins a vector.
inline bool use_streaming(const void* output, int64_t output_bytes, int64_t element_bytes,
                          int num_workers) {
  return output_bytes > num_workers * second_level_cache_bytes() / 2 &&
         reinterpret_cast<uintptr_t>(output) % static_cast<uintptr_t>(element_bytes) == 0;
}

}  // namespace moe::cpu
