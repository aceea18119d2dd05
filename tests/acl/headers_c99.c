/* The whole acl interface used from C99, with values and functions where programs have them. */
#include "acl/acl.h"

typedef aclError (*FreeFunction)(void *);

static aclError keep_going(aclError code) { return code == ACL_SUCCESS ? 0 : code; }

int use_from_c(void *memory);
int use_from_c(void *memory) {
  FreeFunction free_function = aclrtFree;
  aclrtStream stream = 0;
  aclDataType type = ACL_BF16;
  aclFormat format = ACL_FORMAT_ND;
  if (aclDataTypeSize(type) != 2 || format != 2) return ACL_ERROR_INVALID_PARAM;
  if (aclrtMemcpy(memory, 0, memory, 0, ACL_MEMCPY_DEVICE_TO_DEVICE) != ACL_SUCCESS) {
    return ACL_ERROR_RT_PARAM_INVALID;
  }
  if (keep_going(aclrtSynchronizeStream(stream)) != ACL_SUCCESS) return ACL_ERROR_FAILURE;
  return free_function(memory);
}
