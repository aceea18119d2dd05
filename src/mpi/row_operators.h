// The operators on contiguous tensors, planned and run at once.
#pragma once

#include <cstdint>
#include <optional>

#include "moe/engine.h"
#include "moe/tensor.h"

namespace moe::mpi {

// Some tokens' slots and the ids that they name: experts, or ranks.
struct NamedSlots {
  const int32_t* indices;  // [num_tokens, width]
  int64_t num_tokens;
  int64_t width;
  int64_t num_ids;
};

// Some tokens' slots and the rows that belong to them.
struct PlacedSlots {
  const int32_t* sorted_indices;  // [num_tokens * width]
  int64_t num_tokens;
  int64_t width;
  EpRange window;
};

// Rows' elements.
struct RowType {
  DType dtype;
  int64_t size;

  int64_t bytes() const { return size * dtype_bytes(dtype); }
};

// Probs of some tokens' slots [num_tokens, width]; without a dtype there are none.
struct Weights {
  std::optional<DType> dtype;
  const void* probs;
};

// SortByExpert.
void sort(const NamedSlots& slots, int32_t* sorted_indices, int64_t* tokens_per_id,
          const Engine& engine);
// PermuteWithEp.
void permute(const RowType& row, const void* tokens, const NamedSlots& slots, EpRange window,
             void* rows, const Engine& engine);
// PermuteWithEpGrad: the sums of the tokens' rows.
void add_rows(const RowType& row, const void* rows, const PlacedSlots& slots, void* tokens,
              const Engine& engine);
// UnpermuteWithEp.
void unpermute(const RowType& row, const void* rows, const PlacedSlots& slots,
               const Weights& weights, void* tokens, const Engine& engine);
// UnpermuteWithEpGrad; without weights it reads no rows and writes no probs_grad.
void unpermute_grad(const RowType& row, const void* tokens_grad, const PlacedSlots& slots,
                    const void* rows, const Weights& weights, void* rows_grad, void* probs_grad,
                    const Engine& engine);

}  // namespace moe::mpi
