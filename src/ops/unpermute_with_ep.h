// UnpermuteWithEp as its kernels see it: checked, and free of tensor objects.
#pragma once

#include <cstdint>

#include "ops/kernel.h"
#include "ops/unpermute.h"

namespace moe {

struct UnpermuteWithEpProblem : UnpermuteProblem {
  int64_t row_stride, inner_stride;  // of permuted_tokens
};

// First elements; null where the tensor has none.
struct UnpermuteWithEpPointers {
  const void* permuted_tokens;
  const void* sorted_indices;
  const void* probs;
  void* out;
};

using UnpermuteWithEpKernels = KernelList<UnpermuteWithEpProblem, UnpermuteWithEpPointers>;

// Defined in backends.cc.
const UnpermuteWithEpKernels& unpermute_with_ep_kernels();

}  // namespace moe
