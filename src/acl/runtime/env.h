// The environment variables of the drop-in layer, read once per process.
#pragma once

#include <string>

namespace moe::acl {

struct Environment {
  bool launch_blocking = false;    // MOE_ACL_LAUNCH_BLOCKING: operators wait for their work
  bool check_indices = false;      // MOE_ACL_CHECK_INDICES: plans use the checked mode
  bool allow_host_memory = false;  // MOE_ACL_ALLOW_HOST_MEMORY: any memory counts as device memory
  int guard = 0;                   // MOE_ACL_GUARD: 0 off, 1 aligned blocks, 2 exact to the byte

  // What is wrong with a variable: "MOE_ACL_GUARD: got 3, needs 0, 1 or 2". Empty when all are
  // good. aclInit, aclrtSetDevice and aclrtCreateContext fail with it, so that nothing runs under a
  // setting that was not meant; a bad variable itself counts as unset.
  std::string problem;
};

const Environment& environment();

}  // namespace moe::acl
