// UnpermuteWithEp on the CPU: each token's rows of the window are weighed and summed (gather.h).
#include "cpu/unpermute_with_ep.h"

#include <string>

#include "core/dtypes.h"
#include "cpu/check_indices.h"
#include "cpu/gather.h"
#include "cpu/row_kernels.h"

namespace moe::cpu {
namespace {

using Problem = UnpermuteWithEpProblem;
using Pointers = UnpermuteWithEpPointers;

std::string refuses(const Problem& p) { return refuses_rows(p.inner_stride, p.top_k); }

Gather gather_of(const Problem& p, const Pointers& at) {
  const int64_t element = dtype_bytes(p.tokens_dtype);
  return {
      .num_tokens = p.num_tokens,
      .dtype = p.tokens_dtype,
      .slots = {p.index_dtype,
                at.sorted_indices,
                p.index_stride,
                p.window,
                p.top_k,
                {p.probs_dtype, at.probs, p.probs_token_stride, p.probs_stride}},
      .weighted = p.has_probs,
      .input = static_cast<const uint8_t*>(at.permuted_tokens),
      .input_step = p.row_stride * element,
      .row_bytes = p.hidden_size * element,
      .out = static_cast<uint8_t*>(at.out),
      .out_step = p.hidden_size * element,
  };
}

}  // namespace

size_t workspace_bytes(const Problem& p) {
  return p.check_indices ? check_indices_bytes(p.num_slots()) : 0;
}

void add_kernels(UnpermuteWithEpKernels& kernels) {
  add_gather_kernels(kernels, refuses, workspace_bytes, gather_of);
  kernels.push_back(portable_unpermute_with_ep());
}

}  // namespace moe::cpu
