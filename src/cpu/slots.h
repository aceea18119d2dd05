// Where slots lead, and what they weigh.
#pragma once

#include <cstdint>

#include "core/dtypes.h"
#include "moe/tensor.h"

namespace moe::cpu {

// Reads sorted_indices from `first_slot` on. Routing is random, so nothing here branches on it.
template <class Index>
class Slots {
 public:
  // `stride` of the indices, in elements; the window of global rows.
  Slots(const void* indices, int64_t stride, const EpRange& window, int64_t first_slot)
      : step_(stride * int64_t{sizeof(Index)}),
        next_(static_cast<const char*>(indices) + first_slot * step_),
        begin_(static_cast<uint64_t>(window.begin)),
        num_rows_(static_cast<uint64_t>(window.end - window.begin)) {}

  // A slot's row of the window: `inside` or not, then row 0.
  struct Row {
    int64_t row;
    bool inside;
  };
  Row next() {
    const uint64_t row = static_cast<uint64_t>(load<Index>(next_, 0)) - begin_;
    next_ += step_;
    const bool inside = row < num_rows_;
    return {static_cast<int64_t>(row & (uint64_t{0} - inside)), inside};
  }

 private:
  int64_t step_;
  const char* next_;
  uint64_t begin_, num_rows_;
};

// Where the weights of slots are read: probs [num_tokens, top_k], with strides in elements.
struct WeightSource {
  DType dtype;
  const void* probs;
  int64_t token_stride, stride;
};

// Where slots are read and where they lead.
struct SlotSource {
  DType index_dtype;
  const void* indices;
  int64_t index_stride;
  EpRange window;
  int64_t top_k;           // at most kMaxRows
  WeightSource weights{};  // where slots are weighted
};

}  // namespace moe::cpu
