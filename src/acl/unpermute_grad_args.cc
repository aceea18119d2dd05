#include "acl/unpermute_grad_args.h"

namespace moe::acl {

void require_tensors(const Arguments& call, const UnpermuteGradSlots& at,
                     const UnpermuteGradTensors& tensors) {
  const auto& names = call.op().slots;
  require(names[at.grad], tensors.grad);
  require(names[at.indices], tensors.indices);
  require(names[at.rows_out], tensors.rows_out);
}

UnpermuteWithEpGrad::Args unpermute_grad_args(Arguments& call, const UnpermuteGradSlots& at,
                                              const UnpermuteGradTensors& tensors,
                                              const Weights& weights) {
  UnpermuteWithEpGrad::Args args;
  args.probs = weights.probs;
  args.top_k = weights.top_k;
  args.check_indices = check_indices();
  args.unpermuted_tokens_grad = call.tensor(at.grad, tensors.grad, kFloats);
  args.sorted_indices = call.tensor(at.indices, tensors.indices, kInt32);
  if (tensors.rows != nullptr) args.permuted_tokens = call.tensor(at.rows, tensors.rows, kFloats);
  args.permuted_tokens_grad = call.tensor(at.rows_out, tensors.rows_out, kFloats);
  // Without probs their gradient is ignored, its handle too.
  if (weights.probs && tensors.probs_out != nullptr) {
    args.probs_grad = call.tensor(at.probs_out, tensors.probs_out, kFloats);
  }
  return args;
}

}  // namespace moe::acl
