// aclrtMemcpy, aclrtMemset and their queued forms.
#include <cstring>
#include <memory>

#include "acl/acl_rt.h"
#include "acl/runtime/device.h"
#include "acl/runtime/enums.h"
#include "acl/runtime/env.h"
#include "acl/runtime/error.h"
#include "acl/runtime/memory.h"
#include "acl/runtime/stream.h"

namespace moe::acl {
namespace {

enum class Place { kHost, kDevice, kAnywhere };

// Where a kind says that its two sides are.
struct Places {
  Place dst;
  Place src;
};
Places places_of(int kind) {
  switch (kind) {
    case ACL_MEMCPY_HOST_TO_HOST:
      return {Place::kHost, Place::kHost};
    case ACL_MEMCPY_HOST_TO_DEVICE:
      return {Place::kDevice, Place::kHost};
    case ACL_MEMCPY_DEVICE_TO_HOST:
      return {Place::kHost, Place::kDevice};
    case ACL_MEMCPY_DEVICE_TO_DEVICE:
      return {Place::kDevice, Place::kDevice};
    case ACL_MEMCPY_DEFAULT:
      return {Place::kAnywhere, Place::kAnywhere};
  }
  throw Failure(ACL_ERROR_INVALID_PARAM, text("kind: got ", kind, ", needs 0 to 4"));
}

void require_place(const Block* block, const void* address, Place place, const char* name) {
  if (place == Place::kAnywhere || environment().allow_host_memory) return;
  const bool on_device = block != nullptr && block->kind() == MemoryKind::kDevice;
  if (place == Place::kDevice && !on_device) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID,
                  text(name, ": ", hex(address),
                       " is in no live block of aclrtMalloc, but the kind says device memory"));
  }
  if (place == Place::kHost && on_device) {
    throw Failure(
        ACL_ERROR_RT_PARAM_INVALID,
        text(name, ": ", hex(address), " is device memory, but the kind says host memory"));
  }
}

// The block that one side lies in, null for memory of the program's own.
std::shared_ptr<Block> require_side(const void* address, size_t count, Place place,
                                    const char* name) {
  auto block = find_block(address);
  require_place(block.get(), address, place, name);
  if (block == nullptr) return block;
  if (count > block->bytes_from(address)) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID,
                  text(name, ": ", count, " bytes, but only ", block->bytes_from(address),
                       " are left of its block of ", block->size(), " bytes"));
  }
  const std::string damage = block->take_damage();
  if (!damage.empty()) throw Failure(ACL_ERROR_RT_PARAM_INVALID, text(name, ": ", damage));
  return block;
}

void require_room(size_t room, size_t count, const char* name) {
  if (count > room) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID,
                  text("count: got ", count, ", but ", name, " is ", room));
  }
}

// A checked copy, with its blocks pinned.
struct Copy {
  Copy(void* dst_, size_t room, const void* src_, size_t count_, int kind)
      : dst(dst_), src(src_), count(count_) {
    require_argument(dst, "dst");
    require_argument(src, "src");
    const Places places = places_of(kind);
    require_room(room, count, "destMax");
    require_context();
    dst_block = require_side(dst, count, places.dst, "dst");
    src_block = require_side(src, count, places.src, "src");
  }
  // The sides may overlap.
  void operator()() const { std::memmove(dst, src, count); }

  void* dst;
  const void* src;
  size_t count;
  std::shared_ptr<Block> dst_block;
  std::shared_ptr<Block> src_block;
};

// The same for setting bytes.
struct Fill {
  Fill(void* dst_, size_t room, int32_t value_, size_t count_)
      : dst(dst_), value(value_), count(count_) {
    require_argument(dst, "devPtr");
    require_room(room, count, "maxCount");
    require_context();
    block = require_side(dst, count, Place::kAnywhere, "devPtr");
  }
  void operator()() const { std::memset(dst, value, count); }

  void* dst;
  int32_t value;
  size_t count;
  std::shared_ptr<Block> block;
};

}  // namespace
}  // namespace moe::acl

using moe::acl::Copy;
using moe::acl::Fill;
using moe::acl::guarded;
using moe::acl::number_of;
using moe::acl::resolve_stream;

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                     aclrtMemcpyKind kind) {
  if (count == 0) return ACL_SUCCESS;
  return guarded([&] { Copy(dst, destMax, src, count, number_of(kind))(); });
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                          aclrtMemcpyKind kind, aclrtStream stream) {
  if (count == 0) return ACL_SUCCESS;
  return guarded([&] {
    Copy copy(dst, destMax, src, count, number_of(kind));
    resolve_stream(stream)->queue().push(std::move(copy));
  });
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  if (count == 0) return ACL_SUCCESS;
  return guarded([&] { Fill(devPtr, maxCount, value, count)(); });
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                          aclrtStream stream) {
  if (count == 0) return ACL_SUCCESS;
  return guarded([&] {
    Fill fill(devPtr, maxCount, value, count);
    resolve_stream(stream)->queue().push(std::move(fill));
  });
}
