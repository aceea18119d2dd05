/* The rows of the experts of one expert-parallel rank back to their tokens, weighted.
 *
 * With s = sortedIndices[t * K + k] and the window [begin, end) = rangeOptional:
 *   out[t] = sum over k of (begin <= s < end ? permutedTokens[s - begin] * probs[t, k] : 0)
 * A slot whose prob is exactly 0 contributes +0, and its row is not read.
 */
#ifndef ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_EP_H_
#define ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_EP_H_

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Phase 1: checks every argument and says how much workspace phase 2 needs.
 *   permutedTokens       [rows, H], FLOAT, FLOAT16 or BF16; any strides
 *   sortedIndices        [T * K], INT32
 *   probsOptional        [T, K], of the same dtypes; any strides; null or empty: every weight is 1
 *   numTopk              K, 1 to 512
 *   rangeOptional        {begin, end}, 0 <= begin <= end <= T * K, with rows >= end - begin; null
 *                        or empty: the window is [0, rows)
 *   paddedMode           false
 *   restoreShapeOptional null
 *   out                  [T, H], contiguous, of permutedTokens' dtype
 * A null mandatory argument gives ACLNN_ERR_PARAM_NULLPTR, anything else that is wrong
 * ACLNN_ERR_PARAM_INVALID; then neither out-parameter is written. A tensor whose data is still null
 * is legal here. */
aclnnStatus aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(
    const aclTensor *permutedTokens, const aclTensor *sortedIndices, const aclTensor *probsOptional,
    int64_t numTopk, const aclIntArray *rangeOptional, bool paddedMode,
    const aclIntArray *restoreShapeOptional, const aclTensor *out, uint64_t *workspaceSize,
    aclOpExecutor **executor);

/* Phase 2: queues the work on the stream, returns at once, and consumes the executor unless it is
 * repeatable. Tensors may be destroyed afterwards; memory must live until the stream has passed. */
aclnnStatus aclnnMoeTokenUnpermuteWithEp(void *workspace, uint64_t workspaceSize,
                                         aclOpExecutor *executor, aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_EP_H_ */
