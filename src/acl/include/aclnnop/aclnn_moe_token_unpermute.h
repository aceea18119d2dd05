/* The experts' rows back to their tokens, weighted.
 *
 * With s = sortedIndices[t * K + k]:
 *   out[t] = sum over k of (0 <= s < rows ? permutedTokens[s] * probs[t, k] : 0)
 * A slot whose prob is exactly 0 contributes +0, and its row is not read.
 */
#ifndef ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_H_
#define ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_H_

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Phase 1: checks every argument and says how much workspace phase 2 needs.
 *   permutedTokens       [rows, H], FLOAT, FLOAT16 or BF16; any strides
 *   sortedIndices        [T * K], INT32
 *   probsOptional        [T, K], of the same dtypes, K at most 512; any strides; null or empty: K
 *                        is 1 and every weight 1
 *   paddedMode           false
 *   restoreShapeOptional null
 *   out                  [T, H], contiguous, of permutedTokens' dtype
 * A null mandatory argument gives ACLNN_ERR_PARAM_NULLPTR, anything else that is wrong
 * ACLNN_ERR_PARAM_INVALID; then neither out-parameter is written. A tensor whose data is still null
 * is legal here. */
aclnnStatus aclnnMoeTokenUnpermuteGetWorkspaceSize(const aclTensor *permutedTokens,
                                                   const aclTensor *sortedIndices,
                                                   const aclTensor *probsOptional, bool paddedMode,
                                                   const aclIntArray *restoreShapeOptional,
                                                   aclTensor *out, uint64_t *workspaceSize,
                                                   aclOpExecutor **executor);

/* Phase 2: queues the work on the stream, returns at once, and consumes the executor unless it is
 * repeatable. Tensors may be destroyed afterwards; memory must live until the stream has passed. */
aclnnStatus aclnnMoeTokenUnpermute(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                                   aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_H_ */
