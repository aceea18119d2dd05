#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <random>
#include <vector>

namespace moe::bench {
namespace {

constexpr int64_t kHugePage = 2 << 20;
// Address space only: pages come with their first use.
constexpr int64_t kReservedBytes = int64_t{64} << 30;

// A prime number of 16-bit values, so that the block's repetition meets no row size.
const std::vector<uint16_t>& value_block() {
  static const std::vector<uint16_t> block = [] {
    std::vector<uint16_t> values(524287);
    std::mt19937 random(1);
    for (uint16_t& value : values) value = static_cast<uint16_t>(0x3F00u | (random() & 0x80FFu));
    return values;
  }();
  return block;
}

void fill_with_values(std::byte* to, int64_t bytes) {
  const std::vector<uint16_t>& block = value_block();
  const int64_t step = static_cast<int64_t>(block.size() * sizeof block[0]);
  for (int64_t done = 0; done < bytes; done += step) {
    std::memcpy(to + done, block.data(), static_cast<size_t>(std::min(step, bytes - done)));
  }
}

int64_t round_up(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Buffer::Buffer(Content content, int64_t skew_bytes) : content_(content), skew_bytes_(skew_bytes) {
  void* mapped = mmap(nullptr, kReservedBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  pages_ = static_cast<std::byte*>(mapped);
}

Buffer::~Buffer() { munmap(pages_, kReservedBytes); }

std::byte* Buffer::at_least(int64_t bytes) {
  const int64_t start = round_up(reinterpret_cast<intptr_t>(pages_), kHugePage) -
                        reinterpret_cast<intptr_t>(pages_) + skew_bytes_;
  const int64_t needed = round_up(start + bytes, kHugePage);
  if (needed > kReservedBytes) throw std::bad_alloc();
  if (needed > ready_bytes_) {
    std::byte* fresh = pages_ + ready_bytes_;
    const int64_t fresh_bytes = needed - ready_bytes_;
    madvise(fresh, static_cast<size_t>(fresh_bytes), MADV_HUGEPAGE);
    if (content_ == Content::kValues) {
      fill_with_values(fresh, fresh_bytes);
    } else {
      std::memset(fresh, 0, static_cast<size_t>(fresh_bytes));
    }
    ready_bytes_ = needed;
  }
  return pages_ + start;
}

int64_t l2_bytes() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (bytes > 0) return bytes;
#endif
  return 1 << 20;
}

}  // namespace moe::bench
