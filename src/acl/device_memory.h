// Whether the bytes of a tensor or a workspace lie where they may.
#pragma once

#include <cstddef>
#include <memory>

#include "acl/runtime/memory.h"

namespace moe::acl {

// The address `bytes` further on. It may wrap: what it then names is in no block.
void* advanced(void* address, size_t bytes);

// The block that holds [first, first + num_bytes), for as long as the result lives. InvalidArgument
// where a block ends before, and outside every block; unless MOE_ACL_ALLOW_HOST_MEMORY is set: then
// the result may be null.
std::shared_ptr<Block> pin_memory(const char* name, const void* first, size_t num_bytes);

// InvalidArgument where a tensor and the workspace share bytes.
void require_apart(const char* name, const void* first, size_t num_bytes, const void* workspace,
                   size_t workspace_bytes);

}  // namespace moe::acl
