// Whether stores should pass the caches by.
#pragma once

#include <cstdint>

#include "cpu/caches.h"
#include "cpu/processor.h"
#include "cpu/tuning.h"

namespace moe::cpu {

// They should when the output does not fit the caches of the threads that write it, and when
// elements lie on their own boundaries, so that some element of a row begins a vector.
inline bool use_streaming(const void* output, int64_t output_bytes, int64_t element_bytes,
                          int num_workers) {
  return output_bytes > num_workers * second_level_cache_bytes() / 2 &&
         reinterpret_cast<uintptr_t>(output) % static_cast<uintptr_t>(element_bytes) == 0;
}

// The same where rows are written in any order. What one of several threads writes may lie in
// another core's cache then, and takes longer from there than to memory.
inline bool use_streaming_of_rows(const void* output, int64_t output_bytes, int64_t element_bytes,
                                  int num_workers) {
  const int64_t weight = is_intel() ? kIntelScatteredWeight : kScatteredWeight;
  return use_streaming(output, output_bytes * (num_workers > 1 ? weight : 1), element_bytes,
                       num_workers);
}

}  // namespace moe::cpu
