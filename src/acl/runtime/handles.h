// Opaque handles: a table that gives out an index and a generation instead of an address.
//
// A handle's high byte is its table's kind, and makes it no address that an allocator gives out; so
// a handle of another kind, a destroyed one, and any other pointer are told apart from a live one
// without following them. Lookups lock one slot only: a few tens of nanoseconds.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace moe::acl {

// One number per table of the process, in no meaningful order.
enum class HandleKind : uint8_t {
  kContext = 1,
  kStream,
  kEvent,
  kTensor,
  kScalar,
  kIntArray,
  kFloatArray,
  kBoolArray,
  kTensorList,
  kScalarList,
  kExecutor,
};

// The library's tables are never destroyed (make them with `static auto& table = *new
// HandleTable<...>`), because programs release handles in static destructors too. T is complete
// only where objects are made.
template <class T>
class HandleTable {
 public:
  explicit HandleTable(HandleKind kind) : tag_(uintptr_t{0xA0} + static_cast<uintptr_t>(kind)) {}
  ~HandleTable() {
    for (const auto& chunk : chunks_) delete[] chunk.load();
  }
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  // The handle of a new live object; never null. std::bad_alloc without memory or free slots.
  void* insert(std::shared_ptr<T> object) {
    const uint32_t index = take_index();
    Slot& slot = *slot_at(index);
    std::lock_guard<std::mutex> lock(slot.mutex);
    slot.object = std::move(object);
    return encode(index, slot.generation);
  }

  // The live object behind a handle, or null. An object in use outlives its handle.
  std::shared_ptr<T> find(const void* handle) const {
    Slot* slot = slot_of(handle);
    if (slot == nullptr) return nullptr;
    std::lock_guard<std::mutex> lock(slot->mutex);
    return slot->generation == generation_of(handle) ? slot->object : nullptr;
  }

  // Ends the handle and returns its object; null when it was no live handle. Of several threads
  // that try, one gets the object.
  std::shared_ptr<T> erase(const void* handle) {
    Slot* slot = slot_of(handle);
    if (slot == nullptr) return nullptr;
    std::shared_ptr<T> object;
    bool reusable = false;
    {
      std::lock_guard<std::mutex> lock(slot->mutex);
      if (slot->generation != generation_of(handle) || slot->object == nullptr) return nullptr;
      object = std::exchange(slot->object, nullptr);
      // A slot whose generations are used up retires, so that no handle ever comes back.
      reusable = ++slot->generation != 0;
    }
    if (reusable) give_back(index_of(handle));
    return object;
  }

 private:
  struct Slot {
    std::mutex mutex;
    uint32_t generation = 1;
    std::shared_ptr<T> object;
  };
  // Chunk c holds 64 << c slots, so growing never moves a slot and 18 chunks fill 24 bits of index.
  static constexpr uint32_t kFirstChunk = 64;
  static constexpr uint32_t kNumChunks = 18;
  static constexpr uint32_t kMaxSlots = kFirstChunk * ((1u << kNumChunks) - 1);
  static_assert(sizeof(void*) == 8, "a handle is 8 bits of kind, 24 of index, 32 of generation");

  static uint64_t bits(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }
  static uint32_t index_of(const void* handle) { return (bits(handle) >> 32) & 0xFFFFFF; }
  static uint32_t generation_of(const void* handle) { return static_cast<uint32_t>(bits(handle)); }
  void* encode(uint32_t index, uint32_t generation) const {
    return reinterpret_cast<void*>((tag_ << 56) | (uint64_t{index} << 32) | generation);
  }

  static uint32_t chunk_of(uint32_t index) {
    return static_cast<uint32_t>(std::bit_width(index / kFirstChunk + 1)) - 1;
  }
  Slot* slot_at(uint32_t index) const {
    const uint32_t chunk = chunk_of(index);
    if (chunk >= kNumChunks) return nullptr;
    Slot* slots = chunks_[chunk].load(std::memory_order_acquire);
    return slots == nullptr ? nullptr : slots + (index - kFirstChunk * ((1u << chunk) - 1));
  }
  Slot* slot_of(const void* handle) const {
    return bits(handle) >> 56 == tag_ ? slot_at(index_of(handle)) : nullptr;
  }

  uint32_t take_index() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      const uint32_t index = free_.back();
      free_.pop_back();
      return index;
    }
    if (next_ >= kMaxSlots) throw std::bad_alloc();
    const uint32_t chunk = chunk_of(next_);
    if (chunks_[chunk].load(std::memory_order_relaxed) == nullptr) {
      // Room for every slot to be free at once, so that giving one back cannot fail.
      free_.reserve(kFirstChunk * ((2u << chunk) - 1));
      chunks_[chunk].store(new Slot[kFirstChunk << chunk], std::memory_order_release);
    }
    return next_++;
  }
  void give_back(uint32_t index) {
    std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(index);
  }

  const uintptr_t tag_;
  std::array<std::atomic<Slot*>, kNumChunks> chunks_{};
  std::mutex mutex_;
  std::vector<uint32_t> free_;
  uint32_t next_ = 0;
};

}  // namespace moe::acl
