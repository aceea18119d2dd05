// Arguments that are no arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>

#include "array.h"
#include "moe/tensor.h"

namespace moe::python {

namespace nb = nanobind;

// An int, or what says by __index__ that it is one; no bool. TypeError, ValueError past 64 bits.
int64_t to_int(nb::handle object, const char* name);
std::optional<int64_t> to_optional_int(nb::handle object, const char* name);

// None, or two ints: a tuple, a list, an array.
std::optional<EpRange> to_ep_range(nb::handle object);

// Rows of the window, 0 for a window that is to be refused; without one `otherwise`.
int64_t window_rows(const std::optional<EpRange>& range, int64_t otherwise);

// Slots that `indices` describes: [T, K], or [T].
int64_t slots_of(const Array& indices);

// Tokens of [L] sorted_indices; 0 for a top_k that is to be refused.
inline int64_t tokens_of_slots(const Array& sorted_indices, int64_t top_k) {
  return top_k < 1 ? 0 : sorted_indices.size(0) / top_k;
}

// That of sorted_indices: int32 wherever it can count the slots.
inline DType index_dtype(int64_t num_slots) {
  return num_slots <= INT32_MAX ? DType::kI32 : DType::kI64;
}

// Given, or that of probs, or 1.
int64_t top_k_of(nb::handle top_k, const Array& probs);

}  // namespace moe::python
