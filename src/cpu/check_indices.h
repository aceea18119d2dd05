// The checked mode's look at sorted_indices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "moe/tensor.h"

namespace moe::cpu {

// Bytes of workspace that check_indices needs: a bit for each row.
inline size_t check_indices_bytes(int64_t num_slots) {
  return static_cast<size_t>(num_slots / 8 + (num_slots % 8 != 0));
}

// Throws IndexError for the first slot whose value is outside [0, num_slots) or stands in an
// earlier slot too.
void check_indices(DType dtype, const void* indices, int64_t stride, int64_t num_slots,
                   void* workspace);

}  // namespace moe::cpu
