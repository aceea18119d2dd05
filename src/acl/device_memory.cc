#include "acl/device_memory.h"

#include <cstdint>

#include "acl/runtime/env.h"
#include "acl/runtime/error.h"
#include "moe/error.h"

namespace moe::acl {
namespace {

uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

}  // namespace

void* advanced(void* address, size_t bytes) {
  return reinterpret_cast<void*>(number(address) + bytes);
}

std::shared_ptr<Block> pin_memory(const char* name, const void* address, size_t first_byte,
                                  size_t num_bytes) {
  const bool allow_host = environment().allow_host_memory;
  auto block = allow_host ? find_block(address) : find_device_block(address);
  if (block == nullptr) {
    if (allow_host) return nullptr;
    throw InvalidArgument(name, text("data at ", hex(address),
                                     " is in no live aclrtMalloc block, but needs device memory "
                                     "(MOE_ACL_ALLOW_HOST_MEMORY=1 allows any memory)"));
  }
  const size_t last_byte = first_byte + num_bytes;  // both below 2^63
  if (block->bytes_from(address) < last_byte) {
    throw InvalidArgument(
        name, text("reaches to byte ", block->size() - block->bytes_from(address) + last_byte,
                   " of its aclrtMalloc block, but the block has ", block->size(), " bytes"));
  }
  return block;
}

void require_apart(const char* name, const void* first, size_t num_bytes, const void* workspace,
                   size_t workspace_bytes) {
  const uintptr_t begin = number(first), other = number(workspace);
  if (begin + num_bytes <= other || other + workspace_bytes <= begin) return;
  throw InvalidArgument("workspace", text("overlaps ", name, ", but needs memory of its own"));
}

}  // namespace moe::acl
