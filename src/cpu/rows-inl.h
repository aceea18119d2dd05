// Row primitives, compiled once per instruction set: how the raw bytes of a row become numbers and
// back, and sums of rows over one or several vectors. No include guard of the usual kind: Highway
// includes this file again for each target.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/dtypes.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

#if defined(MOE_CPU_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOE_CPU_ROWS_INL_H_
#undef MOE_CPU_ROWS_INL_H_
#else
#define MOE_CPU_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace moe::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A vector of raw bytes is what is loaded and stored: no pointer needs any alignment.
using Bytes = hn::ScalableTag<uint8_t>;
using Raw = hn::Vec<Bytes>;
using Words = hn::Repartition<uint32_t, Bytes>;
using Floats = hn::Repartition<float, Bytes>;
using Doubles = hn::Repartition<double, Bytes>;

// How elements of T widen to accumulators and narrow again, a raw vector at a time. 16-bit elements
// need two accumulators, `first` and `second`: of even and odd elements (kEvenOdd), or of the lower
// and the upper half.
template <class T>
struct Lanes;

template <class T, class D>
struct WholeLanes {
  static constexpr bool kSplit = false;
  using Acc = D;
  static HWY_INLINE hn::Vec<D> first(Raw raw) { return hn::BitCast(D(), raw); }
  static HWY_INLINE Raw join(hn::Vec<D> sum) { return hn::BitCast(Bytes(), sum); }
};
template <>
struct Lanes<float> : WholeLanes<float, Floats> {};
#if HWY_HAVE_FLOAT64
template <>
struct Lanes<double> : WholeLanes<double, Doubles> {};
#endif

// Even elements, then odd ones: a bfloat16 is the upper half of a float, so no lane has to move.
template <>
struct Lanes<BF16> {
  static constexpr bool kSplit = true;
  static constexpr bool kEvenOdd = true;
  using Acc = Floats;
  using Sum = hn::Vec<Floats>;
  static HWY_INLINE Sum first(Raw raw) {
    return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::BitCast(Words(), raw)));
  }
  static HWY_INLINE Sum second(Raw raw) {
    return hn::BitCast(Floats(), hn::And(hn::BitCast(Words(), raw), hn::Set(Words(), 0xFFFF0000u)));
  }
  // A NaN has to end in 16 zeros: rounding leaves it then. All that is computed of bfloat16 numbers
  // does, if weights do (see narrow_nan).
  static HWY_INLINE Raw join(Sum even, Sum odd) {
    const hn::Repartition<uint16_t, Bytes> d;
    const auto evens = hn::BitCast(d, hn::ShiftRight<16>(round(even)));
    return hn::BitCast(Bytes(), hn::OddEven(hn::BitCast(d, round(odd)), evens));
  }

 private:
  // The upper half of each lane is the rounded value.
  static HWY_INLINE hn::Vec<Words> round(Sum sum) {
    const Words d;
    const auto bits = hn::BitCast(d, sum);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
    return hn::Add(hn::Add(bits, hn::Set(d, 0x7FFF)), odd);
  }
};

// Where the hardware widens, in order: lower half, then upper half. Elsewhere, and wherever it
// narrows, by integer arithmetic: even elements, then odd ones.
template <>
struct Lanes<F16> {
  static constexpr bool kSplit = true;
  using Acc = Floats;
  using Sum = hn::Vec<Floats>;

#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
  static constexpr bool kEvenOdd = true;
  static HWY_INLINE Sum first(Raw raw) {
    return widen(hn::And(hn::BitCast(Words(), raw), hn::Set(Words(), 0xFFFF)));
  }
  static HWY_INLINE Sum second(Raw raw) {
    return widen(hn::ShiftRight<16>(hn::BitCast(Words(), raw)));
  }
  static HWY_INLINE Raw join(Sum even, Sum odd) {
    return hn::BitCast(Bytes(), hn::Or(round(even), hn::ShiftLeft<16>(round(odd))));
  }
#else
  static constexpr bool kEvenOdd = false;
  static HWY_INLINE Sum first(Raw raw) { return promote(hn::LowerHalf(HalfBytes(), raw)); }
  static HWY_INLINE Sum second(Raw raw) { return promote(hn::UpperHalf(HalfBytes(), raw)); }
  static HWY_INLINE Raw join(Sum lower, Sum upper) {
    const hn::Repartition<uint16_t, Bytes> d;
#if HWY_ARCH_X86
    // What the hardware rounds is right in every case here, other than what Highway does elsewhere.
    const hn::Half<decltype(d)> half;
    const hn::Rebind<hwy::float16_t, Floats> narrow;
    return hn::BitCast(Bytes(), hn::Combine(d, hn::BitCast(half, hn::DemoteTo(narrow, upper)),
                                            hn::BitCast(half, hn::DemoteTo(narrow, lower))));
#else
    return hn::BitCast(
        Bytes(), hn::ConcatEven(d, hn::BitCast(d, round(upper)), hn::BitCast(d, round(lower))));
#endif
  }
#endif

 private:
  using HalfBytes = hn::Half<Bytes>;
  static HWY_INLINE Sum promote(hn::Vec<HalfBytes> half) {
    return hn::PromoteTo(Floats(), hn::BitCast(hn::Rebind<hwy::float16_t, Floats>(), half));
  }
  // Each lane holds a float16 in its lower half.
  static HWY_INLINE Sum widen(hn::Vec<Words> half) {
    const Words d;
    const auto magnitude = hn::And(half, hn::Set(d, 0x7FFF));
    const auto sign = hn::ShiftLeft<16>(hn::Xor(half, magnitude));
    const auto shifted = hn::ShiftLeft<13>(magnitude);
    const auto rebased = hn::Add(shifted, hn::Set(d, 112u << 23));
    // A subnormal as the fraction of 2^-14, less 2^-14: exact, and no operand is subnormal.
    const auto smallest = hn::Set(d, 113u << 23);
    const auto subnormal = hn::BitCast(d, hn::Sub(hn::BitCast(Floats(), hn::Add(shifted, smallest)),
                                                  hn::BitCast(Floats(), smallest)));
    const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x0400)), subnormal, rebased);
    const auto infinite = hn::Gt(magnitude, hn::Set(d, 0x7BFF));
    const auto value = hn::IfThenElse(infinite, hn::Or(shifted, hn::Set(d, 0x7F800000)), finite);
    return hn::BitCast(Floats(), hn::Or(value, sign));
  }
  // The lower half of each lane is the rounded value, the upper half is zero.
  static HWY_INLINE hn::Vec<Words> round(Sum sum) {
    const Words d;
    const auto bits = hn::BitCast(d, sum);
    const auto magnitude = hn::And(bits, hn::Set(d, 0x7FFFFFFF));
    const auto sign = hn::ShiftRight<16>(hn::Xor(bits, magnitude));
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1));
    // Rebased by 2^-112, and rounded at the 13 bits that go.
    const auto normal =
        hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, hn::Set(d, 0xFFFu - (112u << 23))), odd));
    // Adding 0.5 leaves a unit in the last place of 2^-24, a subnormal's: the addition rounds.
    const auto half = hn::Set(Floats(), 0.5f);
    const auto subnormal = hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(Floats(), magnitude), half)),
                                   hn::BitCast(d, half));
    auto result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x38800000)), subnormal, normal);
    result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x477FFFFF)), hn::Set(d, 0x7C00), result);
    result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7F800000)), hn::Set(d, 0x7E00), result);
    return hn::Or(result, sign);
  }
};

// A weight whose NaN ends in zeros: the product with a bfloat16 number then ends in 16 of them.
template <class Number>
HWY_INLINE Number narrow_nan(Number weight) {
  return std::isnan(weight) ? std::numeric_limits<Number>::quiet_NaN() : weight;
}

// The weight of rows that are summed as they are; other rows have weights of the accumulators'
// type.
struct NoWeight {};

template <class Weight>
constexpr bool kWeighted = !std::is_same_v<Weight, NoWeight>;

// An accumulator of a row, as it is added.
template <class Acc, class Weight>
HWY_INLINE hn::Vec<Acc> weighed(hn::Vec<Acc> numbers, [[maybe_unused]] Weight weight) {
  if constexpr (kWeighted<Weight>) {
    return hn::Mul(numbers, hn::Set(Acc(), weight));
  } else {
    return numbers;
  }
}

// Rows that are summed together: `count` addresses and weights, and +0 or -0 to start from.
template <class Weight>
struct Rows {
  const uint8_t* const* rows;
  const Weight* weights;
  int64_t count;
  bool start_negative;  // -0, which addition ignores; else +0, which a slot outside contributes
};

// A line: what is read of one row before the next row has its turn. 64 bytes, as the caches have
// it, where the length of a vector is known.
#if HWY_HAVE_SCALABLE
constexpr int kLineVectors = 2;
#else
constexpr int kLineVectors = std::max<int>(1, 64 / static_cast<int>(hn::MaxLanes(Bytes())));
#endif
inline int64_t line_bytes() { return kLineVectors * static_cast<int64_t>(hn::Lanes(Bytes())); }

// Shorter than what lines and single vectors may step over.
inline bool is_short_row(int64_t row_bytes) {
  return row_bytes < 64 + static_cast<int64_t>(hn::Lanes(Bytes()));
}

// Asks for a line.
HWY_INLINE void fetch_line(const uint8_t* line) {
  for (int64_t b = 0; b < line_bytes(); b += 64) hwy::Prefetch(line + b);
}

// Asks for bytes into the second-level cache.
HWY_INLINE void fetch_lines_far(const uint8_t* line, int64_t bytes) {
  for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(line + b, 0, 2);
}

// Rows that will be read next: with the line at `offset` of row i, the line at `offset` + `shift`
// of rows[i] is asked for.
struct Ahead {
  const uint8_t* const* rows;
  int64_t shift;

  HWY_INLINE void fetch(int64_t i, int64_t offset) const { fetch_line(rows[i] + offset + shift); }
};

enum class Store { kCached, kStreaming };

template <Store store>
HWY_INLINE void put(Raw raw, uint8_t* out) {
  if constexpr (store == Store::kStreaming) {
    hn::Stream(raw, Bytes(), out);
  } else {
    hn::StoreU(raw, Bytes(), out);
  }
}

// out[offset, offset + N vectors) = the sum of the rows there; N is 1, 2 or 4. A Count that is
// known saves the loop's end, and a branch that random counts would mislead.
template <class T, Store store, int N, int Count, class Weight, class Fetch>
HWY_INLINE void sum_vectors(const Rows<Weight>& in, int64_t offset, uint8_t* out, Fetch&& fetch) {
  using L = Lanes<T>;
  using Acc = typename L::Acc;
  const Bytes d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  const auto start = hn::Set(Acc(), in.start_negative ? -0.0f : 0.0f);
  auto a0 = start, a1 = start, a2 = start, a3 = start;
  auto b0 = start, b1 = start, b2 = start, b3 = start;
  const auto add = [](auto& a, auto& b, Raw raw, Weight weight) HWY_ATTR {
    a = hn::Add(a, weighed<Acc>(L::first(raw), weight));
    if constexpr (L::kSplit) b = hn::Add(b, weighed<Acc>(L::second(raw), weight));
  };
  const auto add_row = [&](int64_t i) HWY_ATTR {
    fetch(i);
    const uint8_t* row = in.rows[i] + offset;
    const Weight weight = in.weights[i];
    add(a0, b0, hn::LoadU(d, row), weight);
    if constexpr (N > 1) add(a1, b1, hn::LoadU(d, row + n), weight);
    if constexpr (N > 2) add(a2, b2, hn::LoadU(d, row + 2 * n), weight);
    if constexpr (N > 2) add(a3, b3, hn::LoadU(d, row + 3 * n), weight);
  };
  if constexpr (Count == 0) {
    for (int64_t i = 0; i < in.count; ++i) add_row(i);
  } else {
    HWY_UNROLL(4)  // all eight spill
    for (int64_t i = 0; i < Count; ++i) add_row(i);
  }
  const auto join = [](auto a, [[maybe_unused]] auto b) HWY_ATTR {
    if constexpr (L::kSplit) {
      return L::join(a, b);
    } else {
      return L::join(a);
    }
  };
  out += offset;
  put<store>(join(a0, b0), out);
  if constexpr (N > 1) put<store>(join(a1, b1), out + n);
  if constexpr (N > 2) put<store>(join(a2, b2), out + 2 * n);
  if constexpr (N > 2) put<store>(join(a3, b3), out + 3 * n);
}

// Not inlined: heads and tails call it from several places.
template <class T, Store store, class Weight>
HWY_NOINLINE void sum_vector(const Rows<Weight>& in, int64_t offset, uint8_t* out) {
  sum_vectors<T, store, 1, 0>(in, offset, out, [](int64_t) {});
}

// The sum of one row, without widening and narrowing, for N vectors; N is 1, 2 or 4. All is loaded
// before anything is stored: in turns of one vector, single rows lost a fifth of their speed.
template <class T, Store store, int N>
HWY_INLINE void copy_vectors(const uint8_t* row, bool start_negative, uint8_t* out) {
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  const hn::Repartition<Bits, Bytes> d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(Bytes()));
  // +0 + -0 is +0: where a slot outside takes part, what equals -0 becomes 0. Else what equals 0
  // does.
  const Bits negative_zero = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  const auto drop = hn::Set(d, start_negative ? Bits{0} : negative_zero);
  const auto get = [&](int64_t i) HWY_ATTR {
    return hn::BitCast(d, hn::LoadU(Bytes(), row + (i < N ? i : 0) * n));
  };
  const auto set = [&](int64_t i, hn::Vec<decltype(d)> bits) HWY_ATTR {
    const auto kept = hn::IfThenZeroElse(hn::Eq(bits, drop), bits);
    if (i < N) put<store>(hn::BitCast(Bytes(), kept), out + i * n);
  };
  const auto r0 = get(0), r1 = get(1), r2 = get(2), r3 = get(3);
  set(0, r0);
  set(1, r1);
  set(2, r2);
  set(3, r3);
}

// The same with a weight, or without.
template <class T, Store store, int N, class Weight>
HWY_INLINE void one_row_vectors(const uint8_t* row, Weight weight, bool start_negative,
                                uint8_t* out) {
  if constexpr (kWeighted<Weight>) {
    const Rows<Weight> in{&row, &weight, 1, start_negative};
    sum_vectors<T, store, N, 1>(in, 0, out, [](int64_t) {});
  } else {
    copy_vectors<T, store, N>(row, start_negative, out);
  }
}

template <Store store>
HWY_INLINE void zero_line(int64_t offset, uint8_t* out) {
  for (int64_t i = 0; i < kLineVectors; ++i) {
    put<store>(hn::Zero(Bytes()), out + offset + i * static_cast<int64_t>(hn::Lanes(Bytes())));
  }
}

// Fewer bytes than a vector, through copies of full vectors.
template <class T, class Weight>
HWY_NOINLINE void sum_bytes(const Rows<Weight>& in, int64_t offset, size_t bytes, uint8_t* out) {
  using L = Lanes<T>;
  using Acc = typename L::Acc;
  const Bytes d;
  HWY_ALIGN uint8_t buffer[HWY_MAX_BYTES] = {};
  const auto start = hn::Set(Acc(), in.start_negative ? -0.0f : 0.0f);
  auto a = start, b = start;
  for (int64_t i = 0; i < in.count; ++i) {
    std::memcpy(buffer, in.rows[i] + offset, bytes);
    const Raw raw = hn::Load(d, buffer);
    a = hn::Add(a, weighed<Acc>(L::first(raw), in.weights[i]));
    if constexpr (L::kSplit) b = hn::Add(b, weighed<Acc>(L::second(raw), in.weights[i]));
  }
  if constexpr (L::kSplit) {
    hn::Store(L::join(a, b), d, buffer);
  } else {
    hn::Store(L::join(a), d, buffer);
  }
  std::memcpy(out + offset, buffer, bytes);
}

// A row of any length, however short.
template <class T, class Weight>
HWY_NOINLINE void sum_short_row(const Rows<Weight>& in, int64_t row_bytes, uint8_t* out) {
  const int64_t n = static_cast<int64_t>(hn::Lanes(Bytes()));
  int64_t h = 0;
  for (; h + n <= row_bytes; h += n) sum_vector<T, Store::kCached>(in, h, out);
  if (h < row_bytes) sum_bytes<T>(in, h, static_cast<size_t>(row_bytes - h), out);
}

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
