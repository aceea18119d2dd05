/* Gradient of the experts' rows going back to their tokens, weighted.
 *
 * With s = sortedIndices[t * K + k] and the window [0, rows):
 *   permutedTokensGradOut[s] = unpermutedTokensGrad[t] * probs[t, k]
 *       for every slot in the window whose prob is not 0; every other row is +0
 *   probsGradOut[t, k] = 0 <= s < rows ? dot(permutedTokens[s], unpermutedTokensGrad[t]) : 0
 */
#ifndef ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_GRAD_H_
#define ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_GRAD_H_

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Phase 1: checks every argument and says how much workspace phase 2 needs.
 *   permutedTokensOptional [rows, H], of unpermutedTokensGrad's dtype; any strides; may be null
 *                          where probsGradOut or probsOptional is
 *   unpermutedTokensGrad   [T, H], FLOAT, FLOAT16 or BF16; any strides
 *   sortedIndices          [T * K], INT32
 *   probsOptional          [T, K], of the same dtypes, K at most 512; any strides; null or empty: K
 *                          is 1, every weight 1, and probsGradOut is ignored
 *   paddedMode             false
 *   restoreShapeOptional   null
 *   permutedTokensGradOut  [rows, H], contiguous, of unpermutedTokensGrad's dtype
 *   probsGradOut           [T, K], contiguous, of the probs' dtype; null: it is not wanted
 * A null mandatory argument gives ACLNN_ERR_PARAM_NULLPTR, anything else that is wrong
 * ACLNN_ERR_PARAM_INVALID; then neither out-parameter is written. A tensor whose data is still null
 * is legal here. */
aclnnStatus aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
    const aclTensor *permutedTokensOptional, const aclTensor *unpermutedTokensGrad,
    const aclTensor *sortedIndices, const aclTensor *probsOptional, bool paddedMode,
    const aclIntArray *restoreShapeOptional, aclTensor *permutedTokensGradOut,
    aclTensor *probsGradOut, uint64_t *workspaceSize, aclOpExecutor **executor);

/* Phase 2: queues the work on the stream, returns at once, and consumes the executor unless it is
 * repeatable. Tensors may be destroyed afterwards; memory must live until the stream has passed. */
aclnnStatus aclnnMoeTokenUnpermuteGrad(void *workspace, uint64_t workspaceSize,
                                       aclOpExecutor *executor, aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_GRAD_H_ */
