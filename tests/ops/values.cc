#include "ops/values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ostream>

namespace test {
namespace {

using moe::DType;

uint32_t pattern(float value) { return std::bit_cast<uint32_t>(value); }

// A value of a few magnitudes, or now and then a zero, the smallest subnormals or a huge one.
double finite_value(ref::Random& random, double tiny, double huge) {
  const double sign = random.below(2) ? -1 : 1;
  switch (random.below(16)) {
    case 0:
      return sign * 0.0;
    case 1:
      return sign * tiny * static_cast<double>(random.below(9));
    case 2:
      return sign * huge * random.unit();
    default:
      return sign * std::ldexp(1 + random.unit(), static_cast<int>(random.below(24)) - 12);
  }
}

uint64_t random_double(Values values, ref::Random& random) {
  if (values == Values::kAnyBits) return random.next();
  if (values == Values::kSmallInts) return std::bit_cast<uint64_t>(random.below(17) - 8.0);
  return std::bit_cast<uint64_t>(finite_value(random, 0x1p-1074, 0x1p1020));
}

bool is_nan(DType dtype, const std::byte* element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<size_t>(moe::dtype_bytes(dtype)));
  if (dtype == DType::kF64) return (bits & ~(uint64_t{1} << 63)) > 0x7ff0000000000000;
  if (dtype == DType::kF32) return (bits & 0x7fffffff) > 0x7f800000;
  return (bits & 0x7fff) > (dtype == DType::kF16 ? 0x7c00 : 0x7f80);
}

std::string hex(const std::byte* element, int64_t bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<size_t>(bytes));
  char text[32];
  std::snprintf(text, sizeof text, "0x%0*llx", static_cast<int>(2 * bytes),
                static_cast<unsigned long long>(bits));
  return text;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  return out << layout.stride << "," << layout.inner_stride << "+" << layout.offset << "/"
             << layout.slack_bytes;
}

ref::Type ref_type(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return ref::Type::kF16;
    case DType::kBF16:
      return ref::Type::kBF16;
    case DType::kF64:
      return ref::Type::kF64;
    case DType::kI32:
      return ref::Type::kI32;
    case DType::kI64:
      return ref::Type::kI64;
    default:
      return ref::Type::kF32;
  }
}

uint64_t random_bits(DType dtype, Values values, ref::Random& random) {
  if (dtype == DType::kF64) return random_double(values, random);
  const bool wide = dtype == DType::kF32;
  if (values == Values::kAnyBits) return random.next() & (wide ? 0xffffffffu : 0xffffu);
  if (values == Values::kSmallInts) {
    const uint32_t bits = pattern(static_cast<float>(random.below(17) - 8));
    return wide ? bits : ref::narrow(ref_type(dtype), bits);
  }
  if (dtype == DType::kF16) {
    const auto value = static_cast<float>(finite_value(random, 0x1p-24, 0x1p13));
    return ref::narrow(ref::Type::kF16, pattern(value));
  }
  const auto value = static_cast<float>(finite_value(random, wide ? 0x1p-149 : 0x1p-133, 0x1p120));
  return wide ? pattern(value) : ref::narrow(ref::Type::kBF16, pattern(value));
}

void store_bits(std::byte* data, int64_t index, int64_t bytes, uint64_t bits) {
  std::memcpy(data + index * bytes, &bits, static_cast<size_t>(bytes));  // little-endian
}

// Bytes up to the last of `rows` rows of `width` elements.
size_t span_bytes(DType dtype, const Layout& layout, int64_t rows, int64_t width) {
  if (rows <= 0 || width <= 0) return 0;
  const int64_t last =
      layout.offset + (rows - 1) * layout.stride + (width - 1) * layout.inner_stride;
  return static_cast<size_t>((last + 1) * moe::dtype_bytes(dtype));
}

std::unique_ptr<GuardedBuffer> memory_of_rows(DType dtype, const Layout& layout, int64_t rows,
                                              int64_t all_rows, int64_t width) {
  return std::make_unique<GuardedBuffer>(span_bytes(dtype, layout, rows, width), layout.slack_bytes,
                                         span_bytes(dtype, layout, all_rows, width));
}

std::vector<std::byte> take(const GuardedBuffer& buffer, const char* name) {
  EXPECT_TRUE(buffer.intact()) << name << ": bytes around the output were written";
  return {buffer.data(), buffer.data() + buffer.size()};
}

void expect_same_values(const char* name, DType dtype, const std::vector<std::byte>& got,
                        const std::vector<std::byte>& want) {
  ASSERT_EQ(got.size(), want.size());
  if (got == want) return;
  const int64_t bytes = moe::dtype_bytes(dtype);
  for (int64_t i = 0; i < static_cast<int64_t>(got.size()) / bytes; ++i) {
    const std::byte *a = got.data() + i * bytes, *b = want.data() + i * bytes;
    if (std::memcmp(a, b, static_cast<size_t>(bytes)) == 0) continue;
    if (is_nan(dtype, a) && is_nan(dtype, b)) continue;
    FAIL() << name << " element " << i << ": got " << hex(a, bytes) << ", want " << hex(b, bytes);
  }
}

}  // namespace test
