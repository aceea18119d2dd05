/* Gradient of the rows of one expert-parallel rank's experts going back to their tokens, weighted.
 * Tensors and attributes stand in another order than in the forward.
 *
 * With s = sortedIndices[t * K + k] and the window [begin, end) = rangeOptional:
 *   permutedTokensGradOut[s - begin] = unpermutedTokensGrad[t] * probs[t, k]
 *       for every slot in the window whose prob is not 0; every other row is +0
 *   probsGradOut[t, k] =
 *       begin <= s < end ? dot(permutedTokens[s - begin], unpermutedTokensGrad[t]) : 0
 */
#ifndef ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_EP_GRAD_H_
#define ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_EP_GRAD_H_

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Phase 1: checks every argument and says how much workspace phase 2 needs.
 *   unpermutedTokensGrad   [T, H], FLOAT, FLOAT16 or BF16; any strides
 *   sortedIndices          [T * K], INT32
 *   permutedTokensOptional [rows, H], of unpermutedTokensGrad's dtype; any strides; may be null
 *                          where probsGradOut or probsOptional is
 *   probsOptional          [T, K], of the same dtypes; any strides; null or empty: every weight is
 *                          1, and probsGradOut is ignored
 *   paddedMode             false
 *   restoreShapeOptional   null
 *   rangeOptional          {begin, end}, 0 <= begin <= end <= T * K, with rows >= end - begin; null
 *                          or empty: the window is [0, rows)
 *   topkNum                K, 1 to 512
 *   permutedTokensGradOut  [rows, H], contiguous, of unpermutedTokensGrad's dtype; rows behind the
 *                          window's are zeros
 *   probsGradOut           [T, K], contiguous, of the probs' dtype; null: it is not wanted
 * A null mandatory argument gives ACLNN_ERR_PARAM_NULLPTR, anything else that is wrong
 * ACLNN_ERR_PARAM_INVALID; then neither out-parameter is written. A tensor whose data is still null
 * is legal here. */
aclnnStatus aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
    const aclTensor *unpermutedTokensGrad, const aclTensor *sortedIndices,
    const aclTensor *permutedTokensOptional, const aclTensor *probsOptional, bool paddedMode,
    const aclIntArray *restoreShapeOptional, const aclIntArray *rangeOptional, int64_t topkNum,
    const aclTensor *permutedTokensGradOut, const aclTensor *probsGradOut, uint64_t *workspaceSize,
    aclOpExecutor **executor);

/* Phase 2: queues the work on the stream, returns at once, and consumes the executor unless it is
 * repeatable. Tensors may be destroyed afterwards; memory must live until the stream has passed. */
aclnnStatus aclnnMoeTokenUnpermuteWithEpGrad(void *workspace, uint64_t workspaceSize,
                                             aclOpExecutor *executor, aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_EP_GRAD_H_ */
