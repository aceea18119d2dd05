// PermuteWithEp as its kernels see it: checked, and free of tensor objects.
#pragma once

#include <cstdint>

#include "moe/tensor.h"
#include "ops/kernel.h"
#include "ops/sort_by_expert.h"

namespace moe {

struct PermuteWithEpProblem {
  SortByExpertProblem sort;  // tokens, experts per token, threads; how sorted_indices are made
  int64_t hidden_size;
  EpRange window;                    // of global rows: row s goes to row s - window.begin
  int64_t num_rows, num_probs_rows;  // of the outputs, at least the window's
  DType tokens_dtype, probs_dtype;
  int64_t row_stride, inner_stride;               // of tokens
  int64_t probs_token_stride, probs_slot_stride;  // of probs
  bool has_probs;

  int64_t window_rows() const { return window.end - window.begin; }
  int64_t row_bytes() const { return hidden_size * dtype_bytes(tokens_dtype); }
};

// First elements; null where the tensor has none.
struct PermuteWithEpPointers {
  const void* tokens;
  const void* indices;
  const void* probs;
  void* permuted_tokens;
  void* sorted_indices;
  void* permuted_probs;
  void* tokens_per_expert;
};

using PermuteWithEpKernels = KernelList<PermuteWithEpProblem, PermuteWithEpPointers>;

// Defined in backends.cc.
const PermuteWithEpKernels& permute_with_ep_kernels();

}  // namespace moe
