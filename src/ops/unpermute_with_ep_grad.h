// UnpermuteWithEpGrad as its kernels see it: checked, and free of tensor objects.
#pragma once

#include <cstdint>

#include "ops/kernel.h"
#include "ops/unpermute.h"

namespace moe {

struct UnpermuteWithEpGradProblem : UnpermuteProblem {
  int64_t token_stride, token_inner_stride;  // of unpermuted_tokens_grad
  int64_t row_stride, row_inner_stride;      // of permuted_tokens
  int64_t num_output_rows;                   // of permuted_tokens_grad: at least the window's
  bool has_probs_grad;                       // then there are probs and permuted_tokens
};

// First elements; null where the tensor has none.
struct UnpermuteWithEpGradPointers {
  const void* unpermuted_tokens_grad;
  const void* sorted_indices;
  const void* permuted_tokens;
  const void* probs;
  void* permuted_tokens_grad;
  void* probs_grad;
};

using UnpermuteWithEpGradKernels =
    KernelList<UnpermuteWithEpGradProblem, UnpermuteWithEpGradPointers>;

// Defined in backends.cc.
const UnpermuteWithEpGradKernels& unpermute_with_ep_grad_kernels();

}  // namespace moe
