// aclnnMoeTokenPermute: the window of moe::PermuteWithEp is all that numOutTokens keeps.
#include "acl/arguments.h"
#include "acl/permute_rows.h"
#include "acl/phases.h"
#include "aclnnop/aclnn_moe_token_permute.h"
#include "moe/permute_with_ep.h"

namespace {

using namespace moe::acl;

enum Slot { kTokens, kIndices, kTokensOut, kSortedOut };

constexpr const char *kSlots[] = {"tokens", "indices", "permuteTokensOut", "sortedIndicesOut"};
constexpr Word kWords[] = {{"permuted_tokens", kSlots[kTokensOut]},
                           {"sorted_indices", kSlots[kSortedOut]}};
constexpr OpSpec kOp{"aclnnMoeTokenPermute", 2, kSlots, kWords};

moe::BoundCall bind(const moe::PermuteWithEp &plan, const Addresses &addresses) {
  return plan.bind({.tokens = addresses[kTokens],
                    .indices = addresses[kIndices],
                    .permuted_tokens = addresses[kTokensOut],
                    .sorted_indices = addresses[kSortedOut]});
}

}  // namespace

aclnnStatus aclnnMoeTokenPermuteGetWorkspaceSize(const aclTensor *tokens, const aclTensor *indices,
                                                 int64_t numOutTokens, bool paddedMode,
                                                 const aclTensor *permuteTokensOut,
                                                 const aclTensor *sortedIndicesOut,
                                                 uint64_t *workspaceSize,
                                                 aclOpExecutor **executor) {
  return phase_one(kOp, workspaceSize, executor, [&](Arguments &call) {
    require(kSlots[kTokens], tokens);
    require(kSlots[kIndices], indices);
    require(kSlots[kTokensOut], permuteTokensOut);
    require(kSlots[kSortedOut], sortedIndicesOut);
    check_padded_mode(paddedMode);
    moe::PermuteWithEp::Args args;
    args.check_indices = check_indices();
    args.tokens = call.tensor(kTokens, tokens, kFloats);
    args.indices = call.tensor(kIndices, indices, kIndexTypes);
    check_experts_per_token(kSlots[kIndices], args.indices);
    args.permuted_tokens = call.tensor(kTokensOut, permuteTokensOut, kFloats);
    args.sorted_indices = call.tensor(kSortedOut, sortedIndicesOut, kInt32);
    const auto plan = moe::PermuteWithEp::plan(args);
    check_rows_kept(kSlots[kTokensOut], args.permuted_tokens, numOutTokens,
                    args.sorted_indices.shape[0]);
    return make_executor(call, plan, bind);
  });
}

aclnnStatus aclnnMoeTokenPermute(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                 aclrtStream stream) {
  return phase_two(kOp, workspace, workspaceSize, executor, stream);
}
