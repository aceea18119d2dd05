#include "support/guarded_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <system_error>

namespace test {
namespace {

constexpr int kPattern = 0xff;
// Rows behind the readable ones may start far behind the end when their stride is large.
constexpr size_t kMinGuardBytes = size_t{1} << 20;

std::byte* map(void* where, size_t size, int protection, int flags, int file = -1) {
  void* address = mmap(where, size, protection, flags, file, 0);
  if (address == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  return static_cast<std::byte*>(address);
}

std::byte* reserve(size_t size, int protection) {
  return map(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
}

bool is_pattern(const std::byte* begin, const std::byte* end) {
  return std::all_of(begin, end, [](std::byte b) { return b == std::byte{kPattern}; });
}

}  // namespace

GuardedBuffer::GuardedBuffer(size_t size, size_t slack, size_t guard) : size_(size) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  pages_size_ = (size + slack + page - 1) / page * page;
  map_size_ = page + pages_size_ + std::max(guard, kMinGuardBytes);
  map_ = reserve(map_size_, PROT_NONE);
  pages_ = map_ + page;
  data_ = pages_ + pages_size_ - slack - size;
  if (pages_size_ == 0) return;
  mprotect(pages_, pages_size_, PROT_READ | PROT_WRITE);
  std::memset(pages_, kPattern, pages_size_);
}

GuardedBuffer::~GuardedBuffer() { munmap(map_, map_size_); }

bool GuardedBuffer::intact() const {
  return is_pattern(pages_, data_) && is_pattern(data_ + size_, pages_ + pages_size_);
}

void GuardedBuffer::fill(int value) const {
  if (size_ > 0) std::memset(data_, value, size_);
}

SparseBuffer::SparseBuffer(size_t size)
    : data_(reserve(size, PROT_READ | PROT_WRITE)), size_(size) {}

SparseBuffer::~SparseBuffer() { munmap(data_, size_); }

RepeatedBuffer::RepeatedBuffer(size_t size)
    : size_((size + kPieceBytes - 1) / kPieceBytes * kPieceBytes) {
  const int file = memfd_create("repeated", 0);
  if (file < 0 || ftruncate(file, kPieceBytes) != 0) {
    throw std::system_error(errno, std::generic_category(), "memfd_create");
  }
  data_ = reserve(size_, PROT_READ | PROT_WRITE);  // the last piece stays as it is
  for (size_t at = 0; at + kPieceBytes < size_; at += kPieceBytes) {
    map(data_ + at, kPieceBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file);
  }
  close(file);
}

RepeatedBuffer::~RepeatedBuffer() { munmap(data_, size_); }

}  // namespace test
