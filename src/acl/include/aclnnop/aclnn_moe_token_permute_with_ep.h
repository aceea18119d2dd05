/* Permutes tokens to the experts of one expert-parallel rank.
 *
 * With order = the slots (t, k) sorted stably by indices[t, k], those without an expert last:
 *   permuteTokensOut[r]           = tokens[token of order[begin + r]]
 *   permuteProbsOut[r]            = probs of order[begin + r]
 *   sortedIndicesOut[t * K + k]   = the place of slot (t, k) in order
 */
#ifndef ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_EP_H_
#define ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_EP_H_

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Phase 1: checks every argument and says how much workspace phase 2 needs.
 *   tokens           [T, H], FLOAT, FLOAT16 or BF16; any strides
 *   indices          [T, K], or [T] for K = 1, INT32 or INT64, K from 1 to 512; any strides. A
 *                    negative id names no expert
 *   probsOptional    [T, K], or [T] for K = 1, of the same dtypes; null or empty: no probs
 *   rangeOptional    {begin, end}, 0 <= begin <= end <= T * K; null or empty: as
 *                    aclnnMoeTokenPermute, and both probs tensors are ignored
 *   numOutTokens     counts only without a range: the first n rows are kept where n > 0, else all
 *                    but the last -n
 *   paddedMode       false
 *   permuteTokensOut [end - begin, H], contiguous, of tokens' dtype
 *   sortedIndicesOut [T * K], contiguous, INT32
 *   permuteProbsOut  [end - begin], contiguous, of the probs' dtype; needed with them
 * A null mandatory argument gives ACLNN_ERR_PARAM_NULLPTR, anything else that is wrong
 * ACLNN_ERR_PARAM_INVALID; then neither out-parameter is written. A tensor whose data is still null
 * is legal here. */
aclnnStatus aclnnMoeTokenPermuteWithEpGetWorkspaceSize(
    const aclTensor *tokens, const aclTensor *indices, const aclTensor *probsOptional,
    const aclIntArray *rangeOptional, int64_t numOutTokens, bool paddedMode,
    const aclTensor *permuteTokensOut, const aclTensor *sortedIndicesOut,
    const aclTensor *permuteProbsOut, uint64_t *workspaceSize, aclOpExecutor **executor);

/* Phase 2: queues the work on the stream, returns at once, and consumes the executor unless it is
 * repeatable. Tensors may be destroyed afterwards; memory must live until the stream has passed. */
aclnnStatus aclnnMoeTokenPermuteWithEp(void *workspace, uint64_t workspaceSize,
                                       aclOpExecutor *executor, aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_EP_H_ */
