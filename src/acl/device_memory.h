// Whether the bytes of a tensor or a workspace lie where they may.
#pragma once

#include <cstddef>
#include <memory>

#include "acl/runtime/memory.h"

namespace moe::acl {

// The address `bytes` further on. It may wrap: what it then names is in no block.
void* advanced(void* address, size_t bytes);

// The block that `address` lies in, for as long as the result lives. InvalidArgument where it ends
// before the bytes [first_byte, first_byte + num_bytes) behind the address do, even if they lie in
// another block, and where there is no block; unless MOE_ACL_ALLOW_HOST_MEMORY is set: then the
// result may be null.
std::shared_ptr<Block> pin_memory(const char* name, const void* address, size_t first_byte,
                                  size_t num_bytes);

// InvalidArgument where a tensor and the workspace share bytes.
void require_apart(const char* name, const void* first, size_t num_bytes, const void* workspace,
                   size_t workspace_bytes);

}  // namespace moe::acl
