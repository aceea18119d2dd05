/* Gradient of permuting tokens to their experts.
 *
 * With s = sortedIndices[t * numTopk + k]:
 *   out[t] = sum over k of (0 <= s < rows ? permutedOutputGrad[s] : 0)
 */
#ifndef ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_GRAD_H_
#define ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_GRAD_H_

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Phase 1: checks every argument and says how much workspace phase 2 needs.
 *   permutedOutputGrad [rows, H], FLOAT, FLOAT16 or BF16; any strides
 *   sortedIndices      [T * numTopk], INT32
 *   numTopk            1 to 512
 *   paddedMode         false
 *   out                [T, H], contiguous, of permutedOutputGrad's dtype
 * A null argument gives ACLNN_ERR_PARAM_NULLPTR, anything else that is wrong
 * ACLNN_ERR_PARAM_INVALID; then neither out-parameter is written. A tensor whose data is still null
 * is legal here. */
aclnnStatus aclnnMoeTokenPermuteGradGetWorkspaceSize(const aclTensor *permutedOutputGrad,
                                                     const aclTensor *sortedIndices,
                                                     int64_t numTopk, bool paddedMode,
                                                     aclTensor *out, uint64_t *workspaceSize,
                                                     aclOpExecutor **executor);

/* Phase 2: queues the work on the stream, returns at once, and consumes the executor unless it is
 * repeatable. Tensors may be destroyed afterwards; memory must live until the stream has passed. */
aclnnStatus aclnnMoeTokenPermuteGrad(void *workspace, uint64_t workspaceSize,
                                     aclOpExecutor *executor, aclrtStream stream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_GRAD_H_ */
