// aclnnMoeTokenPermuteGrad: the window of moe::PermuteWithEpGrad is all there is.
#include "acl/arguments.h"
#include "acl/phases.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"
#include "moe/permute_with_ep_grad.h"

namespace {

using namespace moe::acl;

enum Slot { kGrad, kIndices, kOut };

constexpr const char *kSlots[] = {"permutedOutputGrad", "sortedIndices", "out"};
constexpr Word kWords[] = {{"permuted_tokens_grad", kSlots[kGrad]},
                           {"sorted_indices", kSlots[kIndices]},
                           {"top_k", "numTopk"},
                           {"tokens_grad", kSlots[kOut]}};
constexpr OpSpec kOp{"aclnnMoeTokenPermuteGrad", 2, kSlots, kWords};

moe::BoundCall bind(const moe::PermuteWithEpGrad &plan, const Addresses &addresses) {
  return plan.bind({.permuted_tokens_grad = addresses[kGrad],
                    .sorted_indices = addresses[kIndices],
                    .tokens_grad = addresses[kOut]});
}

}  // namespace

aclnnStatus aclnnMoeTokenPermuteGradGetWorkspaceSize(const aclTensor *permutedOutputGrad,
                                                     const aclTensor *sortedIndices,
                                                     int64_t numTopk, bool paddedMode,
                                                     aclTensor *out, uint64_t *workspaceSize,
                                                     aclOpExecutor **executor) {
  return phase_one(kOp, workspaceSize, executor, [&](Arguments &call) {
    require(kSlots[kGrad], permutedOutputGrad);
    require(kSlots[kIndices], sortedIndices);
    require(kSlots[kOut], out);
    check_top_k("numTopk", numTopk);
    check_padded_mode(paddedMode);
    moe::PermuteWithEpGrad::Args args;
    args.top_k = numTopk;
    args.check_indices = check_indices();
    args.permuted_tokens_grad = call.tensor(kGrad, permutedOutputGrad, kFloats);
    args.sorted_indices = call.tensor(kIndices, sortedIndices, kInt32);
    args.tokens_grad = call.tensor(kOut, out, kFloats);
    return make_executor(call, moe::PermuteWithEpGrad::plan(args), bind);
  });
}

aclnnStatus aclnnMoeTokenPermuteGrad(void *workspace, uint64_t workspaceSize,
                                     aclOpExecutor *executor, aclrtStream stream) {
  return phase_two(kOp, workspace, workspaceSize, executor, stream);
}
