// Elements as C++ types, and their conversions: exact up, one rounding to nearest even down, by
// integer arithmetic, so that no instruction set and no floating-point mode has a say.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "moe/tensor.h"

namespace moe {

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};

// The element `index` of an array at any address: no tensor here needs any alignment.
template <class T>
T load(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * int64_t{sizeof(T)}, sizeof value);
  return value;
}
template <class T>
void store(void* data, int64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * int64_t{sizeof(T)}, &value, sizeof value);
}

// What sums of T are taken in.
template <class T>
struct AccumulatorOf {
  using type = float;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};
template <class T>
using Accumulator = typename AccumulatorOf<T>::type;

inline float widen(float x) { return x; }
inline double widen(double x) { return x; }
inline float widen(BF16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }
inline float widen(F16 x) {
  const uint32_t sign = uint32_t{x.bits & 0x8000u} << 16;
  const uint32_t magnitude = x.bits & 0x7FFFu;
  if (magnitude >= 0x7C00u) {  // inf, NaN
    return std::bit_cast<float>(sign | 0x7F800000u | (magnitude & 0x3FFu) << 13);
  }
  if (magnitude >= 0x0400u) return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  // Subnormal: an integer times 2^-24, exact in float, whatever the mode (no operand is subnormal).
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
}

template <class T>
T narrow(Accumulator<T> x);

template <>
inline float narrow<float>(float x) {
  return x;
}
template <>
inline double narrow<double>(double x) {
  return x;
}
template <>
inline BF16 narrow<BF16>(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {  // NaN: quiet, so that cutting bits leaves no infinity
    return {static_cast<uint16_t>(bits >> 16 | 0x40u)};
  }
  return {static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16)};
}
template <>
inline F16 narrow<F16>(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const auto with_sign = [sign](uint32_t half) { return F16{static_cast<uint16_t>(sign | half)}; };
  if (magnitude > 0x7F800000u) return with_sign(0x7E00u | (magnitude >> 13 & 0x3FFu));
  if (magnitude >= 0x47800000u) return with_sign(0x7C00u);  // 2^16 and more
  if (magnitude >= 0x38800000u) {  // 2^-14 and more: normal; the carry may reach infinity
    const uint32_t rebased = magnitude - (112u << 23);
    return with_sign((rebased + 0xFFFu + (rebased >> 13 & 1u)) >> 13);
  }
  // Subnormal: the significand, shifted so that its last kept bit is worth 2^-24.
  const uint32_t shift = 126u - (magnitude >> 23);
  if (shift > 24) return with_sign(0);  // below half of the smallest
  const uint32_t significand = (magnitude & 0x7FFFFFu) | 0x800000u;
  const uint32_t half = (1u << (shift - 1)) - 1;
  return with_sign((significand + half + (significand >> shift & 1u)) >> shift);
}

// Calls fn with a value of the C++ type of a floating dtype.
template <class Fn>
decltype(auto) visit_float(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kF16:
      return fn(F16{});
    case DType::kBF16:
      return fn(BF16{});
    case DType::kF64:
      return fn(double{});
    default:
      return fn(float{});
  }
}

// The same for int32 and int64.
template <class Fn>
decltype(auto) visit_index(DType dtype, Fn&& fn) {
  return dtype == DType::kI64 ? fn(int64_t{}) : fn(int32_t{});
}

// Copies need the size of an element only.
template <class Fn>
decltype(auto) visit_bytes(DType dtype, Fn&& fn) {
  switch (dtype_bytes(dtype)) {
    case 2:
      return fn(uint16_t{});
    case 8:
      return fn(uint64_t{});
    default:
      return fn(uint32_t{});
  }
}

}  // namespace moe
