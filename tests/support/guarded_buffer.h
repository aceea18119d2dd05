// Memory that tells when somebody reads or writes past it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace test {

// `size` bytes that end `slack` bytes before memory which faults when touched; memory before the
// first page faults too. What lies on the same pages around the bytes holds a pattern that
// intact() compares. `slack` also chooses the alignment: with an even size, slack 1 makes odd
// addresses. The bytes themselves start as the same pattern: NaN in every floating-point format.
// At least `guard` bytes behind them fault, and no other buffer lies there.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t size, size_t slack = 0, size_t guard = 0);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  // Whether the bytes around are still what they were.
  bool intact() const;
  void fill(int value) const;

 private:
  std::byte* map_ = nullptr;
  size_t map_size_ = 0;
  std::byte* pages_ = nullptr;
  size_t pages_size_ = 0;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Address space without memory: pages appear, zeroed, where they are touched.
class SparseBuffer {
 public:
  explicit SparseBuffer(size_t size);
  ~SparseBuffer();
  SparseBuffer(const SparseBuffer&) = delete;
  SparseBuffer& operator=(const SparseBuffer&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_;
  size_t size_;
};

// Address space in which all pieces but the last are the same memory again and again, for outputs
// too large to hold whose pieces all become the same. `size` is rounded up to whole pieces.
class RepeatedBuffer {
 public:
  static constexpr size_t kPieceBytes = size_t{4} << 20;
  explicit RepeatedBuffer(size_t size);
  ~RepeatedBuffer();
  RepeatedBuffer(const RepeatedBuffer&) = delete;
  RepeatedBuffer& operator=(const RepeatedBuffer&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_;
  size_t size_;
};

}  // namespace test
