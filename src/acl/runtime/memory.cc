#include "acl/runtime/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "acl/acl_rt.h"
#include "acl/runtime/device.h"
#include "acl/runtime/enums.h"
#include "acl/runtime/env.h"
#include "acl/runtime/error.h"
#include "acl/runtime/guard.h"

namespace moe::acl {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

// Live blocks by their end, so that one search finds the block that contains an address.
struct Registry {
  std::shared_mutex mutex;
  std::map<uintptr_t, std::shared_ptr<Block>> by_end;
};
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

class PlainBlock final : public Block {
 public:
  using Block::Block;
  ~PlainBlock() override { std::free(address()); }
};

size_t total_memory() {
  static const size_t total =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return total;
}

// Null without memory.
std::shared_ptr<Block> make_plain_block(size_t size, MemoryKind kind) {
  const bool huge = size >= kHugePage;
  void* address = nullptr;
  if (posix_memalign(&address, huge ? kHugePage : kAlignment, size) != 0) return nullptr;
  // Large blocks are read in many streams at once, more than there are entries for small pages. A
  // system that refuses only makes them slower.
  if (huge) madvise(address, size / kHugePage * kHugePage, MADV_HUGEPAGE);
  std::unique_ptr<void, decltype(&std::free)> owner(address, std::free);
  auto block = std::make_shared<PlainBlock>(address, size, kind);
  static_cast<void>(owner.release());
  return block;
}

void say_unguarded_once() {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  constexpr char kNotice[] =
      "MOE_ACL_GUARD: the system has no room for more guarded blocks; some blocks are not guarded";
  set_message(kNotice);
  std::fprintf(stderr, "%s\n", kNotice);
}

std::shared_ptr<Block> make_block(size_t size, MemoryKind kind, const void* caller) {
  // More than the machine has is refused here, because the system may promise it all the same.
  if (size > total_memory()) return nullptr;
  if (environment().guard != 0) {
    if (auto block = make_guarded_block(size, kind, environment().guard == 2, caller)) return block;
    say_unguarded_once();
  }
  return make_plain_block(size, kind);
}

void* allocate(size_t size, MemoryKind kind, const void* caller) {
  auto block = make_block(size, kind, caller);
  if (block == nullptr) {
    throw Failure(ACL_ERROR_RT_MEMORY_ALLOCATION, text("size: no memory for ", size, " bytes"));
  }
  void* const address = block->address();
  std::unique_lock<std::shared_mutex> lock(registry().mutex);
  registry().by_end.emplace(reinterpret_cast<uintptr_t>(address) + size, std::move(block));
  return address;
}

std::shared_ptr<Block> take_block(void* address, MemoryKind kind) {
  Registry& r = registry();
  std::unique_lock<std::shared_mutex> lock(r.mutex);
  const auto found = r.by_end.upper_bound(reinterpret_cast<uintptr_t>(address));
  if (found == r.by_end.end() || found->second->address() != address ||
      found->second->kind() != kind) {
    return nullptr;
  }
  auto block = std::move(found->second);
  r.by_end.erase(found);
  block->end_life();
  return block;
}

void release(void* address, MemoryKind kind, const char* name, const char* maker) {
  const auto block = take_block(address, kind);
  if (block == nullptr) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID,
                  text(name, ": ", hex(address), " is not the start of a live block of ", maker));
  }
  const std::string damage = block->take_damage();
  if (!damage.empty()) throw Failure(ACL_ERROR_RT_PARAM_INVALID, text(name, ": ", damage));
}

void require_size(size_t size) {
  if (size == 0) throw Failure(ACL_ERROR_INVALID_PARAM, "size: got 0, needs at least 1");
}

void require_in_range(int number, int last, const char* name) {
  if (number < 0 || number > last) {
    throw Failure(ACL_ERROR_INVALID_PARAM, text(name, ": got ", number, ", needs 0 to ", last));
  }
}

// What programs could still get, in bytes; a system without the figure answers its free pages.
size_t available_memory() {
  size_t kilobytes = 0;
  if (std::FILE* file = std::fopen("/proc/meminfo", "re")) {
    char line[128];
    while (kilobytes == 0 && std::fgets(line, sizeof(line), file) != nullptr) {
      if (std::sscanf(line, "MemAvailable: %zu", &kilobytes) != 1) kilobytes = 0;
    }
    std::fclose(file);
  }
  if (kilobytes > 0) return kilobytes * 1024;
  return static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) *
         static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::shared_ptr<Block> find_block(const void* address) {
  Registry& r = registry();
  std::shared_lock<std::shared_mutex> lock(r.mutex);
  const auto found = r.by_end.upper_bound(reinterpret_cast<uintptr_t>(address));
  if (found == r.by_end.end() || found->second->address() > address) return nullptr;
  return found->second;
}

std::shared_ptr<Block> find_device_block(const void* address) {
  auto block = find_block(address);
  return block != nullptr && block->kind() == MemoryKind::kDevice ? block : nullptr;
}

void check_all_blocks() {
  if (environment().guard == 0) return;
  std::vector<std::shared_ptr<Block>> blocks;
  {
    std::shared_lock<std::shared_mutex> lock(registry().mutex);
    for (const auto& entry : registry().by_end) blocks.push_back(entry.second);
  }
  for (const auto& block : blocks) {
    const std::string damage = block->take_damage();
    if (!damage.empty()) throw Failure(ACL_ERROR_RT_AICORE_EXCEPTION, damage);
  }
}

}  // namespace moe::acl

using moe::acl::allocate;
using moe::acl::available_memory;
using moe::acl::guarded;
using moe::acl::MemoryKind;
using moe::acl::number_of;
using moe::acl::release;
using moe::acl::require_argument;
using moe::acl::require_context;
using moe::acl::require_in_range;
using moe::acl::require_size;
using moe::acl::total_memory;

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  const void* const caller = __builtin_return_address(0);
  return guarded([&] {
    require_argument(devPtr, "devPtr");
    require_size(size);
    require_in_range(number_of(policy), ACL_MEM_MALLOC_NORMAL_ONLY_P2P, "policy");
    require_context();
    *devPtr = allocate(size, MemoryKind::kDevice, caller);
  });
}

aclError aclrtFree(void* devPtr) {
  return guarded([&] {
    require_argument(devPtr, "devPtr");
    require_context();
    release(devPtr, MemoryKind::kDevice, "devPtr", "aclrtMalloc");
  });
}

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  const void* const caller = __builtin_return_address(0);
  return guarded([&] {
    require_argument(hostPtr, "hostPtr");
    require_size(size);
    *hostPtr = allocate(size, MemoryKind::kHost, caller);
  });
}

aclError aclrtFreeHost(void* hostPtr) {
  return guarded([&] {
    require_argument(hostPtr, "hostPtr");
    release(hostPtr, MemoryKind::kHost, "hostPtr", "aclrtMallocHost");
  });
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total) {
  return guarded([&] {
    require_argument(free, "free");
    require_argument(total, "total");
    require_in_range(number_of(attr), ACL_HBM_MEM_NORMAL, "attr");
    require_context();
    *free = available_memory();
    *total = total_memory();
  });
}
