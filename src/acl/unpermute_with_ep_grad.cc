// aclnnMoeTokenUnpermuteWithEpGrad: arguments to a plan of moe::UnpermuteWithEpGrad.
#include "moe/unpermute_with_ep_grad.h"

#include "acl/arguments.h"
#include "acl/phases.h"
#include "acl/unpermute_grad_args.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep_grad.h"

namespace {

using namespace moe::acl;

enum Slot { kGrad, kIndices, kRows, kProbs, kRowsOut, kProbsOut };

constexpr const char *kSlots[] = {"unpermutedTokensGrad",   "sortedIndices",
                                  "permutedTokensOptional", "probsOptional",
                                  "permutedTokensGradOut",  "probsGradOut"};
constexpr Word kWords[] = {{"unpermuted_tokens_grad", kSlots[kGrad]},
                           {"sorted_indices", kSlots[kIndices]},
                           {"permuted_tokens", kSlots[kRows]},
                           {"probs", kSlots[kProbs]},
                           {"top_k", "topkNum"},
                           {"ep_range", "rangeOptional"},
                           {"permuted_tokens_grad", kSlots[kRowsOut]},
                           {"probs_grad", kSlots[kProbsOut]}};
constexpr OpSpec kOp{"aclnnMoeTokenUnpermuteWithEpGrad", 4, kSlots, kWords};

constexpr UnpermuteGradSlots kAt{.grad = kGrad,
                                 .indices = kIndices,
                                 .rows = kRows,
                                 .probs = kProbs,
                                 .rows_out = kRowsOut,
                                 .probs_out = kProbsOut};

}  // namespace

aclnnStatus aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
    const aclTensor *unpermutedTokensGrad, const aclTensor *sortedIndices,
    const aclTensor *permutedTokensOptional, const aclTensor *probsOptional, bool paddedMode,
    const aclIntArray *restoreShapeOptional, const aclIntArray *rangeOptional, int64_t topkNum,
    const aclTensor *permutedTokensGradOut, const aclTensor *probsGradOut, uint64_t *workspaceSize,
    aclOpExecutor **executor) {
  return phase_one(kOp, workspaceSize, executor, [&](Arguments &call) {
    const UnpermuteGradTensors tensors{.grad = unpermutedTokensGrad,
                                       .indices = sortedIndices,
                                       .rows = permutedTokensOptional,
                                       .rows_out = permutedTokensGradOut,
                                       .probs_out = probsGradOut};
    require_tensors(call, kAt, tensors);
    check_no_padding(paddedMode, restoreShapeOptional);
    const Weights weights = weights_of(call, kProbs, probsOptional, "topkNum", topkNum);
    const auto range = range_of("rangeOptional", rangeOptional);
    auto args = unpermute_grad_args(call, kAt, tensors, weights);
    args.ep_range = range;
    return make_executor(call, moe::UnpermuteWithEpGrad::plan(args), bind_unpermute_grad<kAt>);
  });
}

aclnnStatus aclnnMoeTokenUnpermuteWithEpGrad(void *workspace, uint64_t workspaceSize,
                                             aclOpExecutor *executor, aclrtStream stream) {
  return phase_two(kOp, workspace, workspaceSize, executor, stream);
}
