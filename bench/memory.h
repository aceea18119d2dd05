// Memory for measuring: huge pages, faulted in before any clock runs, the same for the operator and
// for the floor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace moe::bench {

// A buffer that only grows, at an address that never changes.
class Buffer {
 public:
  enum class Content {
    kZeros,
    // Values between 0.5 and 2 in magnitude, of either sign, whether read as float32, float16 or
    // bfloat16, so that sums stay finite in all of them.
    kValues,
  };

  // `skew_bytes` keeps the starts of different buffers out of the same cache sets.
  Buffer(Content content, int64_t skew_bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // The buffer's start, aligned to 64 bytes, with at least `bytes` behind it.
  std::byte* at_least(int64_t bytes);

 private:
  Content content_;
  int64_t skew_bytes_;
  std::byte* pages_;
  int64_t ready_bytes_ = 0;
};

// Bytes of one core's second-level cache.
int64_t l2_bytes();

}  // namespace moe::bench
