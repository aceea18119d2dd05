/* The whole acl interface: types, runtime, and the two calls that frame a program. */
#ifndef ACL_ACL_H_
#define ACL_ACL_H_

#include "acl/acl_base.h"
#include "acl/acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Starts the use of acl. `configPath` may be null; a file is neither needed nor read. A second call
 * gives ACL_ERROR_REPEAT_INITIALIZE and changes nothing. ACL_ERROR_INVALID_PARAM when one of the
 * MOE_ACL_ environment variables holds a value that it does not know. */
aclError aclInit(const char *configPath);

/* Ends it. Twice in a row: ACL_ERROR_REPEAT_FINALIZE; never initialised: ACL_ERROR_UNINITIALIZE.
 * Memory and handles that were not released stay as they are. */
aclError aclFinalize(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* ACL_ACL_H_ */
