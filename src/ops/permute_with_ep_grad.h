// PermuteWithEpGrad as its kernels see it: checked, and free of tensor objects.
#pragma once

#include <cstdint>

#include "moe/tensor.h"
#include "ops/kernel.h"

namespace moe {

struct PermuteWithEpGradProblem {
  int64_t num_tokens, top_k, hidden_size;
  EpRange window;  // of global rows: row s of the window is row s - window.begin of the input
  DType tokens_dtype, index_dtype, probs_dtype;
  int64_t row_stride, inner_stride;  // of permuted_tokens_grad
  int64_t index_stride;              // of sorted_indices
  int64_t probs_stride;              // of permuted_probs_grad
  bool has_probs;
  bool check_indices;  // the kernel verifies sorted_indices before it writes anything
  int num_threads;     // at most
};

// First elements; null where the tensor has none.
struct PermuteWithEpGradPointers {
  const void* permuted_tokens_grad;
  const void* sorted_indices;
  const void* permuted_probs_grad;
  void* tokens_grad;
  void* probs_grad;
};

using PermuteWithEpGradKernels = KernelList<PermuteWithEpGradProblem, PermuteWithEpGradPointers>;

// Defined in backends.cc.
const PermuteWithEpGradKernels& permute_with_ep_grad_kernels();

}  // namespace moe
