/* Gradient of permuting tokens to the experts of one expert-parallel rank.
 *
 * With s = sortedIndices[t * numTopk + k] and the window [begin, end) = rangeOptional:
 *   tokenGradOut[t]    = sum over k of (begin <= s < end ? permutedTokensOutputGrad[s - begin] : 0)
 *   probsGradOut[t, k] =                begin <= s < end ? permutedProbsOutputGrad[s - begin] : 0
 */
#ifndef ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_EP_GRAD_H_
#define ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_EP_GRAD_H_

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Phase 1: checks every argument and says how much workspace phase 2 needs.
 *   permutedTokensOutputGrad        [rows, H], FLOAT, FLOAT16 or BF16; any strides
 *   sortedIndices                   [T * numTopk], INT32
 *   permutedProbsOutputGradOptional [rows'], of the same dtypes; null or empty: no probs
 *   numTopk                         1 to 512
 *   rangeOptional                   {begin, end}, 0 <= begin <= end <= T * numTopk, with
 *                                   rows >= end - begin; null or empty: the window is [0, rows),
 *                                   and both probs tensors are ignored
 *   paddedMode                      false
 *   tokenGradOut                    [T, H], contiguous, of permutedTokensOutputGrad's dtype
 *   probsGradOut                    [T, numTopk], contiguous, of the probs' dtype; needed with them
 * A null mandatory argument gives ACLNN_ERR_PARAM_NULLPTR, anything else that is wrong
 * ACLNN_ERR_PARAM_INVALID; then neither out-parameter is written. A tensor whose data is still null
 * is legal here. */
aclnnStatus aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
    const aclTensor *permutedTokensOutputGrad, const aclTensor *sortedIndices,
    const aclTensor *permutedProbsOutputGradOptional, int64_t numTopk,
    const aclIntArray *rangeOptional, bool paddedMode, const aclTensor *tokenGradOut,
    const aclTensor *probsGradOut, uint64_t *workspaceSize, aclOpExecutor **executor);

/* Phase 2: queues the work on the stream, returns at once, and consumes the executor unless it is
 * repeatable. Tensors may be destroyed afterwards; memory must live until the stream has passed. */
aclnnStatus aclnnMoeTokenPermuteWithEpGrad(void *workspace, uint64_t workspaceSize,
                                           aclOpExecutor *executor, aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_EP_GRAD_H_ */
