#include "ref/dtypes.h"

#include <bit>
#include <cstring>

namespace ref {
namespace {

// An IEEE 754 binary format with one sign bit.
struct Format {
  int exponent_bits;
  int mantissa_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint32_t max_exponent() const { return (1u << exponent_bits) - 1; }
  uint32_t infinity() const { return max_exponent() << mantissa_bits; }
};

constexpr Format kSingle{8, 23};

Format format_of(Type type) { return type == Type::kF16 ? Format{5, 10} : Format{8, 7}; }

template <class T>
T read(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * int64_t{sizeof(T)}, sizeof(T));
  return value;
}

template <class T>
void write(void* data, int64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * int64_t{sizeof(T)}, &value, sizeof(T));
}

// A finite magnitude as the integer `digits` times 2^`exponent`.
struct Scaled {
  uint64_t digits;
  int exponent;
};

Scaled unpack(Format format, uint32_t magnitude) {
  const uint32_t exponent = magnitude >> format.mantissa_bits;
  const uint32_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
  const int lowest = 1 - format.bias() - format.mantissa_bits;
  if (exponent == 0) return {mantissa, lowest};
  return {mantissa | (1u << format.mantissa_bits), lowest + static_cast<int>(exponent) - 1};
}

// digits * 2^-shift to nearest, ties to even.
uint64_t shift_to_nearest_even(uint64_t digits, int shift) {
  if (shift <= 0) return digits << -shift;
  if (shift > 40) return 0;  // digits has at most 24 bits
  const uint64_t rest = digits & ((uint64_t{1} << shift) - 1);
  const uint64_t half = uint64_t{1} << (shift - 1);
  const uint64_t kept = digits >> shift;
  return kept + (rest > half || (rest == half && kept % 2 == 1) ? 1 : 0);
}

uint32_t pack(Format format, Scaled value) {
  if (value.digits == 0) return 0;
  const int leading = value.exponent + std::bit_width(value.digits) - 1;
  const int lowest_normal = 1 - format.bias();
  const int binade = leading < lowest_normal ? lowest_normal : leading;
  const int quantum = binade - format.mantissa_bits;
  const uint64_t digits = shift_to_nearest_even(value.digits, quantum - value.exponent);
  // The implicit bit of `digits` adds the last 1 to the exponent, also where rounding carried.
  const uint64_t encoded =
      (static_cast<uint64_t>(binade - lowest_normal) << format.mantissa_bits) + digits;
  return encoded > format.infinity() ? format.infinity() : static_cast<uint32_t>(encoded);
}

}  // namespace

int64_t type_bytes(Type type) {
  if (type == Type::kF16 || type == Type::kBF16) return 2;
  return type == Type::kF64 || type == Type::kI64 ? 8 : 4;
}

uint32_t widen(Type type, uint16_t bits) {
  const Format format = format_of(type);
  const uint32_t sign = static_cast<uint32_t>(bits >> 15) << 31;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude > format.infinity()) return sign | 0x7fc00000u;
  if (magnitude == format.infinity()) return sign | kSingle.infinity();
  return sign | pack(kSingle, unpack(format, magnitude));
}

uint16_t narrow(Type type, uint32_t bits) {
  const Format format = format_of(type);
  const uint32_t sign = (bits >> 31) << 15;
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t quiet = format.infinity() | (1u << (format.mantissa_bits - 1));
  if (magnitude > kSingle.infinity()) return static_cast<uint16_t>(sign | quiet);
  if (magnitude == kSingle.infinity()) return static_cast<uint16_t>(sign | format.infinity());
  return static_cast<uint16_t>(sign | pack(format, unpack(kSingle, magnitude)));
}

float load_f32(Type type, const void* data, int64_t index) {
  if (type == Type::kF32) return read<float>(data, index);
  return std::bit_cast<float>(widen(type, read<uint16_t>(data, index)));
}

double load_f64(const void* data, int64_t index) { return read<double>(data, index); }

int64_t load_int(Type type, const void* data, int64_t index) {
  return type == Type::kI64 ? read<int64_t>(data, index) : read<int32_t>(data, index);
}

void store_f32(Type type, void* data, int64_t index, float value) {
  if (type == Type::kF32) return write(data, index, value);
  write(data, index, narrow(type, std::bit_cast<uint32_t>(value)));
}

}  // namespace ref
