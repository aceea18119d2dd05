// Uses in C++11 as programs have them; the values are checked where the compiler sees them.
#include <memory>
#include <type_traits>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_token_permute.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute.h"
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep_grad.h"

namespace {

template <class A, class B>
constexpr bool same() {
  return std::is_same<A, B>::value;
}
static_assert(same<aclError, int>() && same<aclnnStatus, int32_t>(), "codes");
static_assert(same<aclrtStream, void *>() && same<aclrtContext, void *>(), "handles");
static_assert(same<aclrtEvent, void *>() && same<aclFloat16, uint16_t>(), "event and half");
static_assert(same<aclrtCallback, void (*)(void *)>(), "callback");

static_assert(aclDataType::ACL_DT_UNDEFINED == -1 && aclDataType::ACL_FLOAT == 0 &&
                  ACL_FLOAT16 == 1 && ACL_INT8 == 2 && ACL_INT32 == 3 && ACL_UINT8 == 4 &&
                  ACL_INT16 == 6 && ACL_UINT16 == 7 && ACL_UINT32 == 8 && ACL_INT64 == 9 &&
                  ACL_UINT64 == 10 && ACL_DOUBLE == 11 && ACL_BOOL == 12 && ACL_STRING == 13 &&
                  ACL_COMPLEX64 == 16 && ACL_COMPLEX128 == 17 && ACL_BF16 == 27 && ACL_INT4 == 29 &&
                  ACL_UINT1 == 30 && ACL_COMPLEX32 == 33,
              "data types");
static_assert(ACL_FORMAT_UNDEFINED == -1 && ACL_FORMAT_NCHW == 0 && ACL_FORMAT_NHWC == 1 &&
                  aclFormat::ACL_FORMAT_ND == 2 && ACL_FORMAT_NC1HWC0 == 3 &&
                  ACL_FORMAT_HWCN == 16 && ACL_FORMAT_NDHWC == 27 && ACL_FORMAT_FRACTAL_NZ == 29 &&
                  ACL_FORMAT_NCDHW == 30 && ACL_FORMAT_NCL == 47,
              "formats");
static_assert(ACL_MEMCPY_HOST_TO_HOST == 0 && ACL_MEMCPY_HOST_TO_DEVICE == 1 &&
                  ACL_MEMCPY_DEVICE_TO_HOST == 2 && ACL_MEMCPY_DEVICE_TO_DEVICE == 3 &&
                  ACL_MEMCPY_DEFAULT == 4,
              "copy kinds");
static_assert(ACL_MEM_MALLOC_HUGE_FIRST == 0 && ACL_MEM_MALLOC_HUGE_ONLY == 1 &&
                  ACL_MEM_MALLOC_NORMAL_ONLY == 2 && ACL_MEM_MALLOC_HUGE_FIRST_P2P == 3 &&
                  ACL_MEM_MALLOC_HUGE_ONLY_P2P == 4 && ACL_MEM_MALLOC_NORMAL_ONLY_P2P == 5,
              "policies");
static_assert(ACL_DEVICE == 0 && ACL_HOST == 1 && ACL_CALLBACK_NO_BLOCK == 0 &&
                  ACL_CALLBACK_BLOCK == 1 && ACL_STREAM_STATUS_COMPLETE == 0 &&
                  ACL_STREAM_STATUS_NOT_READY == 1 && ACL_EVENT_RECORDED_STATUS_NOT_READY == 0 &&
                  ACL_EVENT_RECORDED_STATUS_COMPLETE == 1 && ACL_RT_THREAD_LEVEL == 0,
              "modes and states");
static_assert(ACL_EVENT_SYNC == 1 && ACL_EVENT_CAPTURE_STREAM_PROGRESS == 2 &&
                  ACL_EVENT_TIME_LINE == 8,
              "event flags");
static_assert(ACL_DDR_MEM == 0 && ACL_HBM_MEM == 1 && ACL_DDR_MEM_HUGE == 2 &&
                  ACL_DDR_MEM_NORMAL == 3 && ACL_HBM_MEM_HUGE == 4 && ACL_HBM_MEM_NORMAL == 5,
              "memory attributes");
static_assert(ACL_SUCCESS == 0 && ACL_ERROR_INVALID_PARAM == 100000 &&
                  ACL_ERROR_UNINITIALIZE == 100001 && ACL_ERROR_REPEAT_INITIALIZE == 100002 &&
                  ACL_ERROR_REPEAT_FINALIZE == 100037 && ACL_ERROR_BAD_ALLOC == 200000 &&
                  ACL_ERROR_INTERNAL_ERROR == 500000 && ACL_ERROR_FAILURE == 500001,
              "acl codes");
static_assert(ACL_ERROR_RT_PARAM_INVALID == 107000 && ACL_ERROR_RT_INVALID_DEVICEID == 107001 &&
                  ACL_ERROR_RT_CONTEXT_NULL == 107002 && ACL_ERROR_RT_STREAM_CONTEXT == 107003 &&
                  ACL_ERROR_RT_MEMORY_ALLOCATION == 207001 &&
                  ACL_ERROR_RT_STREAM_SYNC_TIMEOUT == 507046 &&
                  ACL_ERROR_RT_EVENT_SYNC_TIMEOUT == 507047 &&
                  ACL_ERROR_RT_REPORT_TIMEOUT == 507012 && ACL_ERROR_RT_AICORE_EXCEPTION == 507015,
              "runtime codes");
static_assert(ACLNN_SUCCESS == 0 && ACLNN_ERR_PARAM_NULLPTR == 161001 &&
                  ACLNN_ERR_PARAM_INVALID == 161002 && ACLNN_ERR_RUNTIME_ERROR == 361001 &&
                  ACLNN_ERR_INNER == 561000 && ACLNN_ERR_INNER_NULLPTR == 561103 && OK == 0,
              "aclnn codes");

static_assert(same<decltype(&aclrtMemcpy),
                   aclError (*)(void *, size_t, const void *, size_t, aclrtMemcpyKind)>(),
              "aclrtMemcpy");
static_assert(same<decltype(&aclCreateTensor),
                   aclTensor *(*)(const int64_t *, uint64_t, aclDataType, const int64_t *, int64_t,
                                  aclFormat, const int64_t *, uint64_t, void *)>(),
              "aclCreateTensor");
static_assert(same<decltype(&aclnnMoeTokenPermuteWithEpGrad),
                   aclnnStatus (*)(void *, uint64_t, aclOpExecutor *, aclrtStream)>(),
              "phase 2");
static_assert(same<decltype(&aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize),
                   aclnnStatus (*)(const aclTensor *, const aclTensor *, const aclTensor *, int64_t,
                                   const aclIntArray *, bool, const aclTensor *, const aclTensor *,
                                   uint64_t *, aclOpExecutor **)>(),
              "phase 1");
static_assert(same<decltype(&aclnnMoeTokenPermuteGradGetWorkspaceSize),
                   aclnnStatus (*)(const aclTensor *, const aclTensor *, int64_t, bool, aclTensor *,
                                   uint64_t *, aclOpExecutor **)>(),
              "phase 1 without a range");
static_assert(
    same<decltype(&aclnnMoeTokenUnpermuteGetWorkspaceSize),
         aclnnStatus (*)(const aclTensor *, const aclTensor *, const aclTensor *, bool,
                         const aclIntArray *, aclTensor *, uint64_t *, aclOpExecutor **)>(),
    "unpermute");
static_assert(same<decltype(&aclnnMoeTokenUnpermuteGradGetWorkspaceSize),
                   aclnnStatus (*)(const aclTensor *, const aclTensor *, const aclTensor *,
                                   const aclTensor *, bool, const aclIntArray *, aclTensor *,
                                   aclTensor *, uint64_t *, aclOpExecutor **)>(),
              "its gradient");
static_assert(same<decltype(&aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize),
                   aclnnStatus (*)(const aclTensor *, const aclTensor *, const aclTensor *, int64_t,
                                   const aclIntArray *, bool, const aclIntArray *,
                                   const aclTensor *, uint64_t *, aclOpExecutor **)>(),
              "unpermute with a range");
static_assert(
    same<decltype(&aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize),
         aclnnStatus (*)(const aclTensor *, const aclTensor *, const aclTensor *, const aclTensor *,
                         bool, const aclIntArray *, const aclIntArray *, int64_t, const aclTensor *,
                         const aclTensor *, uint64_t *, aclOpExecutor **)>(),
    "its gradient");
static_assert(
    same<decltype(&aclnnMoeTokenPermuteWithEpGetWorkspaceSize),
         aclnnStatus (*)(const aclTensor *, const aclTensor *, const aclTensor *,
                         const aclIntArray *, int64_t, bool, const aclTensor *, const aclTensor *,
                         const aclTensor *, uint64_t *, aclOpExecutor **)>(),
    "phase 1 of the forward");
static_assert(
    same<decltype(&aclnnMoeTokenPermuteGetWorkspaceSize),
         aclnnStatus (*)(const aclTensor *, const aclTensor *, int64_t, bool, const aclTensor *,
                         const aclTensor *, uint64_t *, aclOpExecutor **)>(),
    "phase 1 of the forward without a range");

}  // namespace

// Destroy functions serve as deleters.
int use_from_cxx11();
int use_from_cxx11() {
  std::unique_ptr<aclTensor, aclnnStatus (*)(const aclTensor *)> tensor(nullptr, aclDestroyTensor);
  std::unique_ptr<aclIntArray, aclnnStatus (*)(const aclIntArray *)> array(nullptr,
                                                                           aclDestroyIntArray);
  std::unique_ptr<void, aclError (*)(void *)> block(nullptr, aclrtFree);
  return tensor == nullptr && array == nullptr && block == nullptr ? ACL_SUCCESS
                                                                   : ACL_ERROR_FAILURE;
}
