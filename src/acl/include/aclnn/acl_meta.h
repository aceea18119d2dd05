/* Tensors, scalars, arrays, lists and executors of the aclnn interface.
 *
 * Creators return null on failure, with a message in aclGetRecentErrMsg, and copy what they are
 * given, except a tensor's data. Destroying null succeeds; destroying, or using, a destroyed or
 * foreign handle gives ACLNN_ERR_PARAM_INVALID (an executor: ACLNN_ERR_INNER_NULLPTR). A null
 * argument of an aclGet function gives ACLNN_ERR_PARAM_NULLPTR. Nothing here needs a context.
 */
#ifndef ACLNN_ACL_META_H_
#define ACLNN_ACL_META_H_

#include <stdint.h>
#ifndef __cplusplus
#include <stdbool.h>
#endif

#include "acl/acl_base.h"
#include "aclnn/aclnn_base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclScalarList aclScalarList;
typedef struct aclOpExecutor aclOpExecutor;

/* Not needed before other calls; nothing is read. */
aclnnStatus aclnnInit(const char *configPath);
aclnnStatus aclnnFinalize(void);

/* ---- tensors ---- */

/* A view of `tensorData`, which may be null until an address is set. Strides and offset count
 * elements; null strides mean contiguous. Element (i..) lies at
 * tensorData + (offset + sum i * stride) * size. The storage shape may have another rank. Only null
 * viewDims (or storageDims) with a count above 0 and more than 64 dimensions are refused: all else
 * is checked by the operators. */
aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t *stride, int64_t offset, aclFormat format,
                           const int64_t *storageDims, uint64_t storageDimsNum, void *tensorData);
/* Makes an existing tensor what aclCreateTensor would have made. */
aclnnStatus aclInitTensor(aclTensor *tensor, const int64_t *viewDims, uint64_t viewDimsNum,
                          aclDataType dataType, const int64_t *stride, int64_t offset,
                          aclFormat format, const int64_t *storageDims, uint64_t storageDimsNum,
                          void *tensorData);
aclnnStatus aclDestroyTensor(const aclTensor *tensor);

/* The arrays are made with new int64_t[]: the caller releases them with delete[]. */
aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **viewDims, uint64_t *viewDimsNum);
aclnnStatus aclGetStorageShape(const aclTensor *tensor, int64_t **storageDims,
                               uint64_t *storageDimsNum);
aclnnStatus aclGetViewStrides(const aclTensor *tensor, int64_t **stridesValue,
                              uint64_t *stridesNum);
aclnnStatus aclGetViewOffset(const aclTensor *tensor, int64_t *offset);
aclnnStatus aclGetFormat(const aclTensor *tensor, aclFormat *format);
aclnnStatus aclGetDataType(const aclTensor *tensor, aclDataType *dataType);

/* The address that later phase 1 calls see; executors that exist keep theirs. */
aclnnStatus aclSetRawTensorAddr(aclTensor *tensor, void *addr);
aclnnStatus aclGetRawTensorAddr(const aclTensor *tensor, void **addr);

/* ---- scalars and arrays ---- */

aclScalar *aclCreateScalar(void *value, aclDataType dataType);
/* Null or size 0: an empty array. */
aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size);
aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size);
aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size);
/* The list takes its elements over: destroying it destroys them. */
aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size);
aclScalarList *aclCreateScalarList(const aclScalar *const *value, uint64_t size);

aclnnStatus aclDestroyScalar(const aclScalar *scalar);
aclnnStatus aclDestroyIntArray(const aclIntArray *array);
aclnnStatus aclDestroyFloatArray(const aclFloatArray *array);
aclnnStatus aclDestroyBoolArray(const aclBoolArray *array);
aclnnStatus aclDestroyTensorList(const aclTensorList *array);
aclnnStatus aclDestroyScalarList(const aclScalarList *array);

aclnnStatus aclGetIntArraySize(const aclIntArray *array, uint64_t *size);
aclnnStatus aclGetFloatArraySize(const aclFloatArray *array, uint64_t *size);
aclnnStatus aclGetBoolArraySize(const aclBoolArray *array, uint64_t *size);
aclnnStatus aclGetTensorListSize(const aclTensorList *tensorList, uint64_t *size);
aclnnStatus aclGetScalarListSize(const aclScalarList *scalarList, uint64_t *size);

/* ---- executors ---- */

/* Called right after phase 1, makes an executor one that phase 2 does not consume; it then lives
 * until aclDestroyAclOpExecutor. A null executor or tensor here and below, and an executor that is
 * consumed or destroyed: ACLNN_ERR_INNER_NULLPTR. */
aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor);
aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor);

/* Store another address for a tensor of the executor; phase 2 checks it. Input and output index
 * count within their own kind, aclSetTensorAddr counts the inputs, then the outputs. An index out
 * of range, or one whose tensor was null in phase 1: ACLNN_ERR_PARAM_INVALID. */
aclnnStatus aclSetInputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
                                  void *addr);
aclnnStatus aclSetOutputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
                                   void *addr);
aclnnStatus aclSetTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
                             void *addr);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* ACLNN_ACL_META_H_ */
