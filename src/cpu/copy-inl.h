// Copies of bytes, compiled once per instruction set. No include guard of the usual kind: Highway
// includes this file again for each target.
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#if defined(MOE_CPU_COPY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOE_CPU_COPY_INL_H_
#undef MOE_CPU_COPY_INL_H_
#else
#define MOE_CPU_COPY_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace moe::cpu {
namespace HWY_NAMESPACE {

using CopyTag = hwy::HWY_NAMESPACE::ScalableTag<uint8_t>;

// Copies [from, from + bytes) to `to`, which lies apart and at any address. Meanwhile, the same
// bytes behind `ahead` are asked for, unless it is null.
class Copier {
 public:
  Copier(const uint8_t* from, const uint8_t* ahead, int64_t bytes)
      : from_(from), ahead_(ahead), bytes_(bytes) {}

  template <bool kStreaming>
  HWY_INLINE void copy_to(uint8_t* to) const {
    if (bytes_ < vector_bytes()) {
      std::memcpy(to, from_, static_cast<size_t>(bytes_));
      return;
    }
    int64_t at = 0;
    if constexpr (kStreaming) {
      // Streaming stores need aligned addresses, and full lines to be of use.
      if (bytes_ < 64 + vector_bytes()) return copy_to<false>(to);
      const int64_t head = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) & 63);
      for (; at < head; at += vector_bytes()) move<false>(to, at);
      at = head;
    }
    for (; at + 4 * vector_bytes() <= bytes_; at += 4 * vector_bytes()) {
      ask_for(at);
      for (int64_t v = 0; v < 4; ++v) move<kStreaming>(to, at + v * vector_bytes());
    }
    for (; at + vector_bytes() <= bytes_; at += vector_bytes()) move<kStreaming>(to, at);
    // What is left, with bytes that are there already.
    if (at < bytes_) move<false>(to, bytes_ - vector_bytes());
  }

 private:
  static HWY_INLINE int64_t vector_bytes() {
    return static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(CopyTag()));
  }
  template <bool kStreaming>
  HWY_INLINE void move(uint8_t* to, int64_t at) const {
    const CopyTag d;
    const auto raw = hwy::HWY_NAMESPACE::LoadU(d, from_ + at);
    if constexpr (kStreaming) {
      hwy::HWY_NAMESPACE::Stream(raw, d, to + at);
    } else {
      hwy::HWY_NAMESPACE::StoreU(raw, d, to + at);
    }
  }
  HWY_INLINE void ask_for(int64_t at) const {
    if (ahead_ == nullptr) return;
    for (int64_t b = 0; b < 4 * vector_bytes(); b += 64) hwy::Prefetch(ahead_ + at + b);
  }

  const uint8_t *from_, *ahead_;
  int64_t bytes_;
};

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
