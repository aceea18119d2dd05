// PermuteWithEpGrad on the CPU: each token's rows of the window are summed (gather.h).
#include "cpu/permute_with_ep_grad.h"

#include <string>

#include "core/dtypes.h"
#include "cpu/check_indices.h"
#include "cpu/gather.h"
#include "cpu/row_kernels.h"

namespace moe::cpu {
namespace {

using Problem = PermuteWithEpGradProblem;
using Pointers = PermuteWithEpGradPointers;

std::string refuses(const Problem& p) { return refuses_rows(p.inner_stride, p.top_k); }

Gather gather_of(const Problem& p, const Pointers& at) {
  const int64_t element = dtype_bytes(p.tokens_dtype);
  return {
      .num_tokens = p.num_tokens,
      .dtype = p.tokens_dtype,
      .slots = {p.index_dtype, at.sorted_indices, p.index_stride, p.window, p.top_k},
      .weighted = false,
      .input = static_cast<const uint8_t*>(at.permuted_tokens_grad),
      .input_step = p.row_stride * element,
      .row_bytes = p.hidden_size * element,
      .out = static_cast<uint8_t*>(at.tokens_grad),
      .out_step = p.hidden_size * element,
      .probs_dtype = p.probs_dtype,
      .probs = at.permuted_probs_grad,
      .probs_step = p.has_probs ? p.probs_stride * dtype_bytes(p.probs_dtype) : 0,
      .probs_out = p.has_probs ? at.probs_grad : nullptr,
  };
}

}  // namespace

size_t workspace_bytes(const Problem& p) {
  return p.check_indices ? check_indices_bytes(p.num_tokens * p.top_k) : 0;
}

void add_kernels(PermuteWithEpGradKernels& kernels) {
  add_gather_kernels(kernels, refuses, workspace_bytes, gather_of);
  kernels.push_back(portable_permute_with_ep_grad());
}

}  // namespace moe::cpu
