// What UnpermuteWithEp and its gradient have in common: slots with weights.
#pragma once

#include <cstdint>
#include <optional>

#include "moe/tensor.h"

namespace moe {

// The part of the problem that both kernels see.
struct UnpermuteProblem {
  int64_t num_tokens, top_k, hidden_size;
  EpRange window;  // of global rows: row s of the window is row s - window.begin of the permuted
  DType tokens_dtype, index_dtype, probs_dtype;
  int64_t index_stride;                      // of sorted_indices
  int64_t probs_token_stride, probs_stride;  // of probs: from token to token, from slot to slot
  bool has_probs;                            // else every weight is 1
  bool check_indices;  // the kernel verifies sorted_indices before it writes anything
  int num_threads;     // at most

  int64_t num_slots() const { return num_tokens * top_k; }
  int64_t num_rows() const { return window.end - window.begin; }
};

// The inputs as they stand in the arguments of both.
struct SlotArgs {
  const TensorDesc& sorted_indices;
  const std::optional<TensorDesc>& probs;
  int64_t top_k;

  int64_t num_slots() const { return sorted_indices.shape[0]; }
  int64_t num_tokens() const { return num_slots() / top_k; }
};

// Everything about sorted_indices, top_k and probs, which stand beside `tokens`.
void check_slots(const SlotArgs& slots, const char* tokens_name, const TensorDesc& tokens);

// All but the window and what an engine says.
UnpermuteProblem problem_of_slots(const SlotArgs& slots, const TensorDesc& tokens);

}  // namespace moe
