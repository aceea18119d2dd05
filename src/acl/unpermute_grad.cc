// aclnnMoeTokenUnpermuteGrad: arguments to a plan of moe::UnpermuteWithEpGrad.
#include "acl/arguments.h"
#include "acl/phases.h"
#include "acl/unpermute_weights.h"
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

moe::BoundCall bind(const moe::UnpermuteWithEpGrad &plan, const Addresses &addresses) {
  return plan.bind({.unpermuted_tokens_grad = addresses[kGrad],
                    .sorted_indices = addresses[kIndices],
                    .permuted_tokens = addresses[kRows],
                    .probs = addresses[kProbs],
                    .permuted_tokens_grad = addresses[kRowsOut],
                    .probs_grad = addresses[kProbsOut]});
}

}  // namespace

aclnnStatus aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
    const aclTensor *permutedTokensOptional, const aclTensor *unpermutedTokensGrad,
    const aclTensor *sortedIndices, const aclTensor *probsOptional, bool paddedMode,
    const aclIntArray *restoreShapeOptional, aclTensor *permutedTokensGradOut,
    aclTensor *probsGradOut, uint64_t *workspaceSize, aclOpExecutor **executor) {
  return phase_one(kOp, workspaceSize, executor, [&](Arguments &call) {
    require(kSlots[kGrad], unpermutedTokensGrad);
    require(kSlots[kIndices], sortedIndices);
    require(kSlots[kRowsOut], permutedTokensGradOut);
    check_no_padding(paddedMode, restoreShapeOptional);
    const Weights weights = weights_of(call, kProbs, probsOptional);
    moe::UnpermuteWithEpGrad::Args args;
    args.probs = weights.probs;
    args.top_k = weights.top_k;
    args.check_indices = check_indices();
    args.unpermuted_tokens_grad = call.tensor(kGrad, unpermutedTokensGrad, kFloats);
    args.sorted_indices = call.tensor(kIndices, sortedIndices, kInt32);
    if (permutedTokensOptional != nullptr) {
      args.permuted_tokens = call.tensor(kRows, permutedTokensOptional, kFloats);
    }
    args.permuted_tokens_grad = call.tensor(kRowsOut, permutedTokensGradOut, kFloats);
    // Without probs their gradient is ignored, its handle too.
    if (weights.probs && probsGradOut != nullptr) {
      args.probs_grad = call.tensor(kProbsOut, probsGradOut, kFloats);
    }
    return make_executor(call, moe::UnpermuteWithEpGrad::plan(args), bind);
  });
}

aclnnStatus aclnnMoeTokenUnpermuteGrad(void *workspace, uint64_t workspaceSize,
                                       aclOpExecutor *executor, aclrtStream stream) {
  return phase_two(kOp, workspace, workspaceSize, executor, stream);
}
