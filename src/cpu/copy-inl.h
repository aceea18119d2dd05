// Copies of rows, compiled once per instruction set. No include guard of the usual kind: Highway
// includes this file again for each target.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cpu/rows-inl.h"

#if defined(MOE_CPU_COPY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOE_CPU_COPY_INL_H_
#undef MOE_CPU_COPY_INL_H_
#else
#define MOE_CPU_COPY_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace moe::cpu {
namespace HWY_NAMESPACE {

// Copies N vectors, at most 8. All are loaded before any is stored: in turns, the loads waited for
// the stores.
template <Store store, int N>
HWY_INLINE void move_vectors(const uint8_t* from, uint8_t* to) {
  const Bytes d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  const auto get = [&](int i) HWY_ATTR { return hn::LoadU(d, from + (i < N ? i : 0) * n); };
  const auto set = [&](int i, Raw raw) HWY_ATTR {
    if (i < N) put<store>(raw, to + i * n);
  };
  const Raw r0 = get(0), r1 = get(1), r2 = get(2), r3 = get(3);
  const Raw r4 = get(4), r5 = get(5), r6 = get(6), r7 = get(7);
  set(0, r0);
  set(1, r1);
  set(2, r2);
  set(3, r3);
  set(4, r4);
  set(5, r5);
  set(6, r6);
  set(7, r7);
}

// A multiple of the caches' lines and of the copies'; a long vector is longer than the former.
inline int64_t whole_line_bytes() { return std::max<int64_t>(64, line_bytes()); }

// Nothing is asked for.
struct NoAhead {
  void fetch(int64_t) const {}
};
// With the line at some offset, the line at the same offset of `row` is asked for.
struct RowAhead {
  const uint8_t* row;
  HWY_INLINE void fetch(int64_t offset) const { fetch_line(row + offset); }
};
// And the one of `far` into the second-level cache.
struct TwoRowsAhead {
  const uint8_t *row, *far;
  HWY_INLINE void fetch(int64_t offset) const {
    fetch_line(row + offset);
    fetch_lines_far(far + offset, line_bytes());
  }
};

// Copies the whole lines of [begin, end), two at a time.
template <Store store, class Ahead>
HWY_INLINE void copy_lines(const uint8_t* from, uint8_t* to, int64_t begin, int64_t end,
                           Ahead ahead) {
  const int64_t line = line_bytes();
  for (; begin + 2 * line <= end; begin += 2 * line) {
    ahead.fetch(begin);
    ahead.fetch(begin + line);
    move_vectors<store, 2 * kLineVectors>(from + begin, to + begin);
  }
  if (begin + line > end) return;
  ahead.fetch(begin);
  move_vectors<store, kLineVectors>(from + begin, to + begin);
}

// Streaming stores need aligned addresses, and full lines to be of use: the bytes of a row before
// its first whole line.
template <Store store>
HWY_INLINE int64_t head_bytes(const uint8_t* to) {
  return store == Store::kStreaming ? static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) & 63)
                                    : 0;
}

// What whole lines leave of a row, at its start and at its end. A row is at least a line and a
// vector long: what is copied twice is the same.
template <Store store>
HWY_INLINE void copy_ends(const uint8_t* from, uint8_t* to, int64_t row_bytes) {
  const int64_t n = static_cast<int64_t>(hn::Lanes(Bytes())), head = head_bytes<store>(to);
  const auto move = [&](int64_t at)
                        HWY_ATTR { move_vectors<Store::kCached, 1>(from + at, to + at); };
  for (int64_t at = 0; at < head; at += n) move(at);
  int64_t at = head + (row_bytes - head) / line_bytes() * line_bytes();
  for (; at + n <= row_bytes; at += n) move(at);
  if (at < row_bytes) move(row_bytes - n);
}

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
