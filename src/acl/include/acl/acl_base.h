/* Types, values and error codes of the acl interface, and the functions that need no device.
 *
 * Every function that can fail returns 0 (ACL_SUCCESS) or one of the codes below; then
 * aclGetRecentErrMsg says what was wrong. All functions are safe from any thread.
 */
#ifndef ACL_ACL_BASE_H_
#define ACL_ACL_BASE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef int aclError;
typedef uint16_t aclFloat16; /* the bits of an IEEE binary16 number */

/* Opaque handles. They carry an index and a generation, never an address, so that a destroyed or
 * foreign one is reported instead of followed. */
typedef void *aclrtStream;
typedef void *aclrtContext;
typedef void *aclrtEvent;

static const int ACL_SUCCESS = 0;

static const int ACL_ERROR_INVALID_PARAM = 100000;     /* a null or unknown argument */
static const int ACL_ERROR_UNINITIALIZE = 100001;      /* aclFinalize without aclInit */
static const int ACL_ERROR_REPEAT_INITIALIZE = 100002; /* aclInit twice: harmless */
static const int ACL_ERROR_REPEAT_FINALIZE = 100037;   /* aclFinalize twice in a row */
static const int ACL_ERROR_BAD_ALLOC = 200000;         /* no host memory for bookkeeping */
static const int ACL_ERROR_INTERNAL_ERROR = 500000;    /* anything unforeseen */
static const int ACL_ERROR_FAILURE = 500001;

static const int ACL_ERROR_RT_PARAM_INVALID = 107000; /* a bad handle, pointer, size or time */
static const int ACL_ERROR_RT_INVALID_DEVICEID = 107001;
static const int ACL_ERROR_RT_CONTEXT_NULL = 107002;   /* no device is set on this thread */
static const int ACL_ERROR_RT_STREAM_CONTEXT = 107003; /* the stream is of another context */
static const int ACL_ERROR_RT_MEMORY_ALLOCATION = 207001;
static const int ACL_ERROR_RT_REPORT_TIMEOUT = 507012;
static const int ACL_ERROR_RT_AICORE_EXCEPTION = 507015; /* work failed while running */
static const int ACL_ERROR_RT_STREAM_SYNC_TIMEOUT = 507046;
static const int ACL_ERROR_RT_EVENT_SYNC_TIMEOUT = 507047;

typedef enum {
  ACL_DT_UNDEFINED = -1,
  ACL_FLOAT = 0,
  ACL_FLOAT16 = 1,
  ACL_INT8 = 2,
  ACL_INT32 = 3,
  ACL_UINT8 = 4,
  ACL_INT16 = 6,
  ACL_UINT16 = 7,
  ACL_UINT32 = 8,
  ACL_INT64 = 9,
  ACL_UINT64 = 10,
  ACL_DOUBLE = 11,
  ACL_BOOL = 12,
  ACL_STRING = 13,
  ACL_COMPLEX64 = 16,
  ACL_COMPLEX128 = 17,
  ACL_BF16 = 27,
  ACL_INT4 = 29,
  ACL_UINT1 = 30,
  ACL_COMPLEX32 = 33
} aclDataType;

typedef enum {
  ACL_FORMAT_UNDEFINED = -1,
  ACL_FORMAT_NCHW = 0,
  ACL_FORMAT_NHWC = 1,
  ACL_FORMAT_ND = 2,
  ACL_FORMAT_NC1HWC0 = 3,
  ACL_FORMAT_HWCN = 16,
  ACL_FORMAT_NDHWC = 27,
  ACL_FORMAT_FRACTAL_NZ = 29,
  ACL_FORMAT_NCDHW = 30,
  ACL_FORMAT_NCL = 47
} aclFormat;

/* Returns and clears this thread's newest message; null when there is none. The pointer is good
 * until this thread's next call of this function. Long messages are cut at 2047 bytes. */
const char *aclGetRecentErrMsg(void);

/* Bytes of one element; 0 for ACL_STRING, ACL_DT_UNDEFINED and unknown values; 1 for ACL_INT4 and
 * ACL_UINT1, which are narrower than a byte. */
size_t aclDataTypeSize(aclDataType dataType);

/* Exact, except that exponent 31 is read as an ordinary exponent: there is no infinity and no NaN,
 * and 0x7C00 is 65536. */
float aclFloat16ToFloat(aclFloat16 value);

/* Rounds to nearest even and saturates: overflow, infinity and NaN become 65504 with the sign. */
aclFloat16 aclFloatToFloat16(float value);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* ACL_ACL_BASE_H_ */
