// What the two gradients of unpermute in this layer share: their tensors stand in different orders.
#pragma once

#include "acl/unpermute_weights.h"
#include "moe/unpermute_with_ep_grad.h"

namespace moe::acl {

// Where the tensors stand in a prototype.
struct UnpermuteGradSlots {
  size_t grad, indices, rows, probs, rows_out, probs_out;
};

struct UnpermuteGradTensors {
  const aclTensor *grad, *indices, *rows, *rows_out, *probs_out;
};

// Throws where a mandatory tensor is null.
void require_tensors(const Arguments& call, const UnpermuteGradSlots& at,
                     const UnpermuteGradTensors& tensors);

// The arguments of the plan, but for the range.
UnpermuteWithEpGrad::Args unpermute_grad_args(Arguments& call, const UnpermuteGradSlots& at,
                                              const UnpermuteGradTensors& tensors,
                                              const Weights& weights);

template <const UnpermuteGradSlots& at>
BoundCall bind_unpermute_grad(const UnpermuteWithEpGrad& plan, const Addresses& addresses) {
  return plan.bind({.unpermuted_tokens_grad = addresses[at.grad],
                    .sorted_indices = addresses[at.indices],
                    .permuted_tokens = addresses[at.rows],
                    .probs = addresses[at.probs],
                    .permuted_tokens_grad = addresses[at.rows_out],
                    .probs_grad = addresses[at.probs_out]});
}

}  // namespace moe::acl
