// aclnnMoeTokenUnpermute: arguments to a plan of moe::UnpermuteWithEp.
#include "acl/arguments.h"
#include "acl/phases.h"
#include "acl/unpermute_weights.h"
#include "aclnnop/aclnn_moe_token_unpermute.h"
#include "moe/unpermute_with_ep.h"

namespace {

using namespace moe::acl;

enum Slot { kRows, kIndices, kProbs, kOut };

constexpr const char *kSlots[] = {"permutedTokens", "sortedIndices", "probsOptional", "out"};
constexpr Word kWords[] = {{"permuted_tokens", kSlots[kRows]},
                           {"sorted_indices", kSlots[kIndices]},
                           {"probs", kSlots[kProbs]}};
constexpr OpSpec kOp{"aclnnMoeTokenUnpermute", 3, kSlots, kWords};

moe::BoundCall bind(const moe::UnpermuteWithEp &plan, const Addresses &addresses) {
  return plan.bind({.permuted_tokens = addresses[kRows],
                    .sorted_indices = addresses[kIndices],
                    .probs = addresses[kProbs],
                    .out = addresses[kOut]});
}

}  // namespace

aclnnStatus aclnnMoeTokenUnpermuteGetWorkspaceSize(const aclTensor *permutedTokens,
                                                   const aclTensor *sortedIndices,
                                                   const aclTensor *probsOptional, bool paddedMode,
                                                   const aclIntArray *restoreShapeOptional,
                                                   aclTensor *out, uint64_t *workspaceSize,
                                                   aclOpExecutor **executor) {
  return phase_one(kOp, workspaceSize, executor, [&](Arguments &call) {
    require(kSlots[kRows], permutedTokens);
    require(kSlots[kIndices], sortedIndices);
    require(kSlots[kOut], out);
    check_no_padding(paddedMode, restoreShapeOptional);
    const Weights weights = weights_of(call, kProbs, probsOptional);
    moe::UnpermuteWithEp::Args args;
    args.probs = weights.probs;
    args.top_k = weights.top_k;
    args.check_indices = check_indices();
    args.permuted_tokens = call.tensor(kRows, permutedTokens, kFloats);
    args.sorted_indices = call.tensor(kIndices, sortedIndices, kInt32);
    args.out = call.tensor(kOut, out, kFloats);
    return make_executor(call, moe::UnpermuteWithEp::plan(args), bind);
  });
}

aclnnStatus aclnnMoeTokenUnpermute(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                   aclrtStream stream) {
  return phase_two(kOp, workspace, workspaceSize, executor, stream);
}
