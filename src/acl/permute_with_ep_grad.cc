// aclnnMoeTokenPermuteWithEpGrad: arguments to a plan of moe::PermuteWithEpGrad.
#include "moe/permute_with_ep_grad.h"

#include "acl/arguments.h"
#include "acl/phases.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"

namespace {

using namespace moe::acl;

enum Slot { kGrad, kIndices, kProbs, kTokenOut, kProbsOut };

constexpr const char *kSlots[] = {"permutedTokensOutputGrad", "sortedIndices",
                                  "permutedProbsOutputGradOptional", "tokenGradOut",
                                  "probsGradOut"};
constexpr Word kWords[] = {
    {"permuted_tokens_grad", kSlots[kGrad]}, {"sorted_indices", kSlots[kIndices]},
    {"permuted_probs_grad", kSlots[kProbs]}, {"top_k", "numTopk"},
    {"ep_range", "rangeOptional"},           {"tokens_grad", kSlots[kTokenOut]},
    {"probs_grad", kSlots[kProbsOut]}};
constexpr OpSpec kOp{"aclnnMoeTokenPermuteWithEpGrad", 3, kSlots, kWords};

moe::BoundCall bind(const moe::PermuteWithEpGrad &plan, const Addresses &addresses) {
  return plan.bind({.permuted_tokens_grad = addresses[kGrad],
                    .sorted_indices = addresses[kIndices],
                    .permuted_probs_grad = addresses[kProbs],
                    .tokens_grad = addresses[kTokenOut],
                    .probs_grad = addresses[kProbsOut]});
}

}  // namespace

aclnnStatus aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
    const aclTensor *permutedTokensOutputGrad, const aclTensor *sortedIndices,
    const aclTensor *permutedProbsOutputGradOptional, int64_t numTopk,
    const aclIntArray *rangeOptional, bool paddedMode, const aclTensor *tokenGradOut,
    const aclTensor *probsGradOut, uint64_t *workspaceSize, aclOpExecutor **executor) {
  return phase_one(kOp, workspaceSize, executor, [&](Arguments &call) {
    require(kSlots[kGrad], permutedTokensOutputGrad);
    require(kSlots[kIndices], sortedIndices);
    require(kSlots[kTokenOut], tokenGradOut);
    check_top_k("numTopk", numTopk);
    check_padded_mode(paddedMode);
    moe::PermuteWithEpGrad::Args args;
    args.top_k = numTopk;
    args.ep_range = range_of("rangeOptional", rangeOptional);
    args.check_indices = check_indices();
    args.permuted_tokens_grad = call.tensor(kGrad, permutedTokensOutputGrad, kFloats);
    args.sorted_indices = call.tensor(kIndices, sortedIndices, kInt32);
    args.tokens_grad = call.tensor(kTokenOut, tokenGradOut, kFloats);
    // Without a range the page ignores both, so not even their handles are looked at.
    if (args.ep_range && !is_absent(kSlots[kProbs], permutedProbsOutputGradOptional)) {
      args.permuted_probs_grad = call.tensor(kProbs, permutedProbsOutputGradOptional, kFloats);
      args.probs_grad = call.tensor(kProbsOut, probsGradOut, kFloats);
    }
    return make_executor(call, moe::PermuteWithEpGrad::plan(args), bind);
  });
}

aclnnStatus aclnnMoeTokenPermuteWithEpGrad(void *workspace, uint64_t workspaceSize,
                                           aclOpExecutor *executor, aclrtStream stream) {
  return phase_two(kOp, workspace, workspaceSize, executor, stream);
}
