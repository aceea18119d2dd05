// aclnnMoeTokenPermuteWithEp: arguments to a plan of moe::PermuteWithEp.
#include "moe/permute_with_ep.h"

#include "acl/arguments.h"
#include "acl/permute_rows.h"
#include "acl/phases.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep.h"

namespace {

using namespace moe::acl;

enum Slot { kTokens, kIndices, kProbs, kTokensOut, kSortedOut, kProbsOut };

constexpr const char *kSlots[] = {"tokens",           "indices",          "probsOptional",
                                  "permuteTokensOut", "sortedIndicesOut", "permuteProbsOut"};
constexpr Word kWords[] = {{"probs", kSlots[kProbs]},
                           {"ep_range", "rangeOptional"},
                           {"permuted_tokens", kSlots[kTokensOut]},
                           {"sorted_indices", kSlots[kSortedOut]},
                           {"permuted_probs", kSlots[kProbsOut]}};
constexpr OpSpec kOp{"aclnnMoeTokenPermuteWithEp", 3, kSlots, kWords};

moe::BoundCall bind(const moe::PermuteWithEp &plan, const Addresses &addresses) {
  return plan.bind({.tokens = addresses[kTokens],
                    .indices = addresses[kIndices],
                    .probs = addresses[kProbs],
                    .permuted_tokens = addresses[kTokensOut],
                    .sorted_indices = addresses[kSortedOut],
                    .permuted_probs = addresses[kProbsOut]});
}

void check_rows(const moe::PermuteWithEp::Args &args, int64_t num_out_tokens) {
  if (!args.ep_range) {
    return check_rows_kept(kSlots[kTokensOut], args.permuted_tokens, num_out_tokens,
                           args.sorted_indices.shape[0]);
  }
  check_rows_of_range(kSlots[kTokensOut], args.permuted_tokens, *args.ep_range);
  if (args.probs) {
    check_rows_of_range(kSlots[kProbsOut], *args.permuted_probs, *args.ep_range);
  }
}

}  // namespace

aclnnStatus aclnnMoeTokenPermuteWithEpGetWorkspaceSize(
    const aclTensor *tokens, const aclTensor *indices, const aclTensor *probsOptional,
    const aclIntArray *rangeOptional, int64_t numOutTokens, bool paddedMode,
    const aclTensor *permuteTokensOut, const aclTensor *sortedIndicesOut,
    const aclTensor *permuteProbsOut, uint64_t *workspaceSize, aclOpExecutor **executor) {
  return phase_one(kOp, workspaceSize, executor, [&](Arguments &call) {
    require(kSlots[kTokens], tokens);
    require(kSlots[kIndices], indices);
    require(kSlots[kTokensOut], permuteTokensOut);
    require(kSlots[kSortedOut], sortedIndicesOut);
    check_padded_mode(paddedMode);
    moe::PermuteWithEp::Args args;
    args.ep_range = range_of("rangeOptional", rangeOptional);
    args.check_indices = check_indices();
    args.tokens = call.tensor(kTokens, tokens, kFloats);
    args.indices = call.tensor(kIndices, indices, kIndexTypes);
    check_experts_per_token(kSlots[kIndices], args.indices);
    args.permuted_tokens = call.tensor(kTokensOut, permuteTokensOut, kFloats);
    args.sorted_indices = call.tensor(kSortedOut, sortedIndicesOut, kInt32);
    // Without a range the page ignores both, so not even their handles are looked at.
    if (args.ep_range && !is_absent(kSlots[kProbs], probsOptional)) {
      args.probs = call.tensor(kProbs, probsOptional, kFloats);
      args.permuted_probs = call.tensor(kProbsOut, permuteProbsOut, kFloats);
    }
    const auto plan = moe::PermuteWithEp::plan(args);
    check_rows(args, numOutTokens);
    return make_executor(call, plan, bind);
  });
}

aclnnStatus aclnnMoeTokenPermuteWithEp(void *workspace, uint64_t workspaceSize,
                                       aclOpExecutor *executor, aclrtStream stream) {
  return phase_two(kOp, workspace, workspaceSize, executor, stream);
}
