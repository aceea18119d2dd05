// aclnnMoeTokenUnpermuteGrad: arguments to a plan of moe::UnpermuteWithEpGrad.
#include "acl/arguments.h"
#include "acl/phases.h"
#include "acl/unpermute_grad_args.h"
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"
#include "moe/unpermute_with_ep_grad.h"

namespace {

using namespace moe::acl;

enum Slot { kRows, kGrad, kIndices, kProbs, kRowsOut, kProbsOut };

constexpr const char *kSlots[] = {"permutedTokensOptional", "unpermutedTokensGrad",
                                  "sortedIndices",          "probsOptional",
                                  "permutedTokensGradOut",  "probsGradOut"};
constexpr Word kWords[] = {
    {"unpermuted_tokens_grad", kSlots[kGrad]},  {"sorted_indices", kSlots[kIndices]},
    {"permuted_tokens", kSlots[kRows]},         {"probs", kSlots[kProbs]},
    {"permuted_tokens_grad", kSlots[kRowsOut]}, {"probs_grad", kSlots[kProbsOut]}};
constexpr OpSpec kOp{"aclnnMoeTokenUnpermuteGrad", 4, kSlots, kWords};

constexpr UnpermuteGradSlots kAt{.grad = kGrad,
                                 .indices = kIndices,
                                 .rows = kRows,
                                 .probs = kProbs,
                                 .rows_out = kRowsOut,
                                 .probs_out = kProbsOut};

}  // namespace

aclnnStatus aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
    const aclTensor *permutedTokensOptional, const aclTensor *unpermutedTokensGrad,
    const aclTensor *sortedIndices, const aclTensor *probsOptional, bool paddedMode,
    const aclIntArray *restoreShapeOptional, aclTensor *permutedTokensGradOut,
    aclTensor *probsGradOut, uint64_t *workspaceSize, aclOpExecutor **executor) {
  return phase_one(kOp, workspaceSize, executor, [&](Arguments &call) {
    const UnpermuteGradTensors tensors{.grad = unpermutedTokensGrad,
                                       .indices = sortedIndices,
                                       .rows = permutedTokensOptional,
                                       .rows_out = permutedTokensGradOut,
                                       .probs_out = probsGradOut};
    require_tensors(call, kAt, tensors);
    check_no_padding(paddedMode, restoreShapeOptional);
    const Weights weights = weights_of(call, kProbs, probsOptional);
    const auto args = unpermute_grad_args(call, kAt, tensors, weights);
    return make_executor(call, moe::UnpermuteWithEpGrad::plan(args), bind_unpermute_grad<kAt>);
  });
}

aclnnStatus aclnnMoeTokenUnpermuteGrad(void *workspace, uint64_t workspaceSize,
                                       aclOpExecutor *executor, aclrtStream stream) {
  return phase_two(kOp, workspace, workspaceSize, executor, stream);
}
