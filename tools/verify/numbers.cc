#include "verify/numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace moe::tools {
namespace {

template <class T>
T load(const std::byte* data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * int64_t{sizeof(T)}, sizeof value);
  return value;
}

template <class T>
void store(std::byte* data, int64_t index, T value) {
  std::memcpy(data + index * int64_t{sizeof(T)}, &value, sizeof value);
}

// A float16's fields, by arithmetic: the library's own conversions are what is being checked.
float widen_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float magnitude = 0;
  if (exponent == 31) {
    magnitude = fraction ? NAN : INFINITY;
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

uint16_t narrow_f16(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7E00;
  if (magnitude >= 65520) return sign | 0x7C00;  // rounds past the largest
  const int exponent = magnitude < 0x1p-14f ? -14 : std::ilogb(magnitude);
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  // 1024 units are a significand of 1; a carry moves on to the next exponent by itself.
  return static_cast<uint16_t>(sign | (((exponent + 14) << 10) + units));
}

uint16_t narrow_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

template <class Signed>
int64_t ordered(Signed bits) {
  constexpr auto kLowest = std::numeric_limits<Signed>::min();
  return bits < 0 ? static_cast<int64_t>(kLowest) - bits : bits;
}

}  // namespace

bool is_float(FileDType dtype) {
  return dtype == FileDType::kF16 || dtype == FileDType::kBF16 || dtype == FileDType::kF32 ||
         dtype == FileDType::kF64;
}

bool is_number(FileDType dtype) { return is_float(dtype) || dtype <= FileDType::kU64; }

float widen(FileDType dtype, uint16_t bits) {
  return dtype == FileDType::kF16 ? widen_f16(bits) : std::bit_cast<float>(uint32_t{bits} << 16);
}

uint16_t narrow(FileDType dtype, float value) {
  return dtype == FileDType::kF16 ? narrow_f16(value) : narrow_bf16(value);
}

float rounded(FileDType dtype, float value) {
  return dtype == FileDType::kF32 ? value : widen(dtype, narrow(dtype, value));
}

float truncated(FileDType dtype, float value) {
  const float near = rounded(dtype, value);
  if (dtype == FileDType::kF32 || !(std::fabs(near) > std::fabs(value))) return near;
  return widen(dtype, static_cast<uint16_t>(narrow(dtype, near) - 1));  // the next towards zero
}

double load_number(FileDType dtype, const std::byte* data, int64_t index) {
  switch (dtype) {
    case FileDType::kF16:
    case FileDType::kBF16:
      return widen(dtype, load<uint16_t>(data, index));
    case FileDType::kF32:
      return load<float>(data, index);
    case FileDType::kF64:
      return load<double>(data, index);
    case FileDType::kI64:
      return static_cast<double>(load<int64_t>(data, index));
    case FileDType::kU64:
      return static_cast<double>(load<uint64_t>(data, index));
    case FileDType::kI32:
      return load<int32_t>(data, index);
    case FileDType::kU32:
      return load<uint32_t>(data, index);
    case FileDType::kI16:
      return load<int16_t>(data, index);
    case FileDType::kU16:
      return load<uint16_t>(data, index);
    case FileDType::kI8:
      return load<int8_t>(data, index);
    default:
      return load<uint8_t>(data, index);
  }
}

void store_number(FileDType dtype, std::byte* data, int64_t index, double value) {
  if (dtype == FileDType::kF64) return store(data, index, value);
  if (dtype == FileDType::kF32) return store(data, index, static_cast<float>(value));
  if (is_float(dtype)) return store(data, index, narrow(dtype, static_cast<float>(value)));
  if (dtype == FileDType::kI64) return store(data, index, static_cast<int64_t>(value));
  store(data, index, static_cast<int32_t>(value));
}

int64_t ordinal(FileDType dtype, const std::byte* data, int64_t index) {
  switch (dtype) {
    case FileDType::kF16:
    case FileDType::kBF16:
      return ordered(load<int16_t>(data, index));
    case FileDType::kF32:
      return ordered(load<int32_t>(data, index));
    case FileDType::kF64:
      return ordered(load<int64_t>(data, index));
    case FileDType::kI64:
      return load<int64_t>(data, index);
    default:
      return static_cast<int64_t>(load_number(dtype, data, index));
  }
}

bool is_nan(FileDType dtype, const std::byte* data, int64_t index) {
  return is_float(dtype) && std::isnan(load_number(dtype, data, index));
}

uint64_t ulps_between(int64_t a, int64_t b) {
  const auto low = static_cast<uint64_t>(std::min(a, b)),
             high = static_cast<uint64_t>(std::max(a, b));
  return high - low;
}

double half_ulp_of_one(FileDType dtype) {
  switch (dtype) {
    case FileDType::kF16:
      return 0x1p-11;
    case FileDType::kBF16:
      return 0x1p-8;
    case FileDType::kF64:
      return 0x1p-53;
    default:
      return 0x1p-24;
  }
}

}  // namespace moe::tools
