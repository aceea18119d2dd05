#include "acl/runtime/guard.h"

#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "acl/runtime/error.h"

namespace moe::acl {
namespace {

constexpr unsigned char kCanary = 0xC5;
constexpr size_t kAlignment = 64;

size_t round_up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

// The call of the program that allocated, and its callers: our own frames teach nobody anything.
void capture_frames(GuardRecord& record, const void* caller) {
  void* frames[GuardRecord::kMaxFrames];
  const int count = backtrace(frames, GuardRecord::kMaxFrames);
  void** const end = frames + count;
  void** const found = std::find(frames, end, caller);
  void** const first = found == end ? frames : found;
  record.num_frames = static_cast<int>(end - first);
  std::copy(first, end, record.frames);
}

std::string place_of(const GuardRecord& record) {
  if (record.num_frames == 0) return "an unknown place";
  char** const names = backtrace_symbols(record.frames, 1);
  if (names == nullptr) return hex(record.frames[0]);
  std::string name = names[0];
  std::free(names);
  return name;
}

class GuardedBlock final : public Block {
 public:
  GuardedBlock(GuardRecord* record, size_t page, MemoryKind kind)
      : Block(reinterpret_cast<void*>(record->begin), record->end - record->begin, kind),
        record_(record),
        head_(reinterpret_cast<unsigned char*>(record->reserved_begin + page)),
        tail_end_(reinterpret_cast<unsigned char*>(record->reserved_end - page)) {
    restore();
  }

  ~GuardedBlock() override {
    record_->freed = true;
    // A new mapping in its place gives the memory back and keeps the addresses; where that fails,
    // protecting the old one at least keeps the fault.
    const size_t bytes = static_cast<size_t>(tail_end_ - head_);
    if (mmap(head_, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
             0) == MAP_FAILED) {
      mprotect(head_, bytes, PROT_NONE);
    }
  }

  std::string take_damage() override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto broken = [](unsigned char byte) { return byte != kCanary; };
    const auto after = static_cast<size_t>(std::count_if(end(), tail_end_, broken));
    const auto before = static_cast<size_t>(std::count_if(head_, begin(), broken));
    if (after + before == 0) return {};
    const std::string block = text("the block of ", size(), " bytes at ", hex(address()),
                                   ", allocated at ", place_of(*record_));
    const auto first = static_cast<size_t>(std::find_if(end(), tail_end_, broken) - begin());
    restore();
    if (after > 0) {
      return text(after, " bytes were written behind ", block, ", the first at offset ", first);
    }
    return text(before, " bytes were written before ", block);
  }

 private:
  unsigned char* begin() const { return static_cast<unsigned char*>(address()); }
  unsigned char* end() const { return begin() + size(); }
  void restore() {
    std::fill(head_, begin(), kCanary);
    std::fill(end(), tail_end_, kCanary);
  }

  GuardRecord* const record_;
  unsigned char* const head_;      // begin of the accessible pages
  unsigned char* const tail_end_;  // their end
  std::mutex mutex_;
};

}  // namespace

std::shared_ptr<Block> make_guarded_block(size_t size, MemoryKind kind, bool exact,
                                          const void* caller) {
  install_fault_handler();
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t padded = exact ? size : round_up(size, kAlignment);
  const size_t accessible = round_up(padded, page);
  const size_t reserved = accessible + 2 * page;
  auto record = std::make_unique<GuardRecord>();
  capture_frames(*record, caller);

  void* const base =
      mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  if (mprotect(static_cast<char*>(base) + page, accessible, PROT_READ | PROT_WRITE) != 0) {
    munmap(base, reserved);
    return nullptr;
  }
  record->reserved_begin = reinterpret_cast<uintptr_t>(base);
  record->reserved_end = record->reserved_begin + reserved;
  record->begin = record->reserved_end - page - padded;
  record->end = record->begin + size;
  auto block = std::make_shared<GuardedBlock>(record.get(), page, kind);
  publish(record.release());
  return block;
}

}  // namespace moe::acl
