// Rules for arguments that operators share: slots, windows, rows, dtypes that go together. Each
// check throws InvalidArgument; none knows any operator.
#pragma once

#include <cstdint>
#include <optional>

#include "moe/engine.h"
#include "moe/tensor.h"

namespace moe {

// At least 1, and a divisor of the number of slots, which are those of the argument `name`.
void check_top_k(int64_t top_k, const char* name, int64_t num_slots);

// Few enough that the size of no workspace leaves 64 bits: by strides of 0, more can be described.
void check_num_slots(const char* name, int64_t num_slots);

// The window of global rows: the range, 0 <= begin <= end <= num_slots, or all rows that there are.
EpRange window_of(const std::optional<EpRange>& ep_range, int64_t num_slots, int64_t rows);

// The argument `name` has at least the window's rows.
void check_rows(const char* name, int64_t rows, const EpRange& window);

// float64 goes with float64 only: `name` beside `other_name`.
void check_float64_pair(const char* name, DType dtype, const char* other_name, DType other);

// The most threads that a plan for the engine may use.
int threads_of(const Engine& engine);

// The stride of a dimension. One of size 0 or 1 is never stepped over, so its stride may hold
// anything: it becomes `if_single`.
inline int64_t stride_of(const TensorDesc& desc, int dim, int64_t if_single = 0) {
  return desc.shape[dim] <= 1 ? if_single : desc.strides[dim];
}

// A pointer to an optional description, null where it is absent: what BoundTensor takes.
inline const TensorDesc* given(const std::optional<TensorDesc>& desc) {
  return desc ? &*desc : nullptr;
}

}  // namespace moe
