// The registry of memory blocks: what aclrtMalloc and aclrtMallocHost gave and nobody freed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace moe::acl {

enum class MemoryKind { kDevice, kHost };

// One block. Its memory lives as long as the object: queued work pins its blocks by holding them.
class Block {
 public:
  Block(void* address, size_t size, MemoryKind kind)
      : address_(address), size_(size), kind_(kind) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  virtual ~Block() = default;

  void* address() const { return address_; }
  size_t size() const { return size_; }
  MemoryKind kind() const { return kind_; }

  // Whether find_block still finds it: false from aclrtFree on, whoever holds it.
  bool live() const { return live_.load(std::memory_order_acquire); }
  void end_life() { live_.store(false, std::memory_order_release); }

  // Bytes from `inside`, an address in the block, to the block's end.
  size_t bytes_from(const void* inside) const {
    return size_ - static_cast<size_t>(static_cast<const char*>(inside) -
                                       static_cast<const char*>(address_));
  }

  // What is wrong with the bytes around the block, each damage once; empty when nothing is, and
  // always without guard mode.
  virtual std::string take_damage() { return {}; }

 private:
  void* address_;
  size_t size_;
  MemoryKind kind_;
  std::atomic<bool> live_{true};
};

// The live block of any kind that contains `address`, or null. A freed block that queued work still
// pins is no longer found. Cheap: a shared lock and a search by address.
std::shared_ptr<Block> find_block(const void* address);

// The same, device memory only.
std::shared_ptr<Block> find_device_block(const void* address);

// In guard mode: a Failure with ACL_ERROR_RT_AICORE_EXCEPTION when bytes around any live block were
// written since the last report.
void check_all_blocks();

}  // namespace moe::acl
