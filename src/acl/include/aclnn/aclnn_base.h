/* Status codes of the aclnn interface. */
#ifndef ACLNN_ACLNN_BASE_H_
#define ACLNN_ACLNN_BASE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t aclnnStatus;

static const aclnnStatus ACLNN_SUCCESS = 0;
static const aclnnStatus ACLNN_ERR_PARAM_NULLPTR = 161001; /* a mandatory argument is null */
static const aclnnStatus ACLNN_ERR_PARAM_INVALID = 161002; /* any other bad argument */
static const aclnnStatus ACLNN_ERR_RUNTIME_ERROR = 361001; /* no context, or another's stream */
static const aclnnStatus ACLNN_ERR_INNER = 561000;         /* no memory, or unforeseen */
static const aclnnStatus ACLNN_ERR_INNER_NULLPTR = 561103; /* an executor that is used up */

#ifdef __cplusplus
}

constexpr aclnnStatus OK = 0;
#endif

#endif /* ACLNN_ACLNN_BASE_H_ */
