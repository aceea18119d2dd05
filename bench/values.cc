#include "values.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace moe::bench {

// Written here again, and not shared with the library: what is checked must not check itself.
double to_double(DType dtype, const std::byte* at) {
  if (dtype == DType::kF32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  if (dtype == DType::kBF16) return std::bit_cast<float>(uint32_t{bits} << 16);
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return fraction ? NAN : (bits & 0x8000 ? -INFINITY : INFINITY);
  const double magnitude =
      exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

double half_unit(DType dtype) {
  return dtype == DType::kF32 ? 0x1p-24 : dtype == DType::kF16 ? 0x1p-11 : 0x1p-8;
}

}  // namespace moe::bench
