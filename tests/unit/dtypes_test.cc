// The library's scalar conversions against the oracle's.
#include "core/dtypes.h"

#include <gtest/gtest.h>

#include "core/fp_mode.h"
#include "ref/dtypes.h"
#include "support/effort.h"

namespace {

using moe::BF16;
using moe::F16;

bool is_nan(uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }
uint32_t bits(float value) { return std::bit_cast<uint32_t>(value); }

template <class T>
void expect_widened_like(ref::Type type) {
  for (uint32_t v = 0; v < 0x10000; ++v) {
    const auto pattern = static_cast<uint16_t>(v);
    const uint32_t got = bits(moe::widen(T{pattern})), want = ref::widen(type, pattern);
    ASSERT_TRUE(got == want || (is_nan(got) && is_nan(want))) << v;
  }
}

TEST(Dtypes, Widen) {
  expect_widened_like<F16>(ref::Type::kF16);
  expect_widened_like<BF16>(ref::Type::kBF16);
}

template <class T>
void expect_narrowed_like(ref::Type type, uint32_t pattern) {
  const uint16_t got = moe::narrow<T>(std::bit_cast<float>(pattern)).bits;
  const uint16_t want = ref::narrow(type, pattern);
  ASSERT_TRUE(got == want || (is_nan(ref::widen(type, got)) && is_nan(pattern)))
      << std::hex << pattern << ": got " << got << ", want " << want;
}

// The float32 values next to every 16-bit value and to every midpoint of two of them.
template <class T>
void expect_neighbourhoods_like(ref::Type type) {
  for (uint32_t v = 0; v < 0x10000; ++v) {
    const uint32_t here = ref::widen(type, static_cast<uint16_t>(v));
    const uint32_t next = ref::widen(type, static_cast<uint16_t>(v + 1));
    for (const uint32_t centre : {here, here + (next - here) / 2}) {
      for (uint32_t near = centre - 2; near != centre + 3; ++near) {
        expect_narrowed_like<T>(type, near);
      }
    }
  }
}

TEST(Dtypes, NarrowInEveryNeighbourhood) {
  expect_neighbourhoods_like<F16>(ref::Type::kF16);
  expect_neighbourhoods_like<BF16>(ref::Type::kBF16);
}

TEST(Dtypes, NarrowAcrossAllOfFloat32) {
  // A prime step, so that low bits vary.
  for (uint64_t v = 0; v < (uint64_t{1} << 32); v += test::kSanitized ? 65521 : 1021) {
    expect_narrowed_like<F16>(ref::Type::kF16, static_cast<uint32_t>(v));
    expect_narrowed_like<BF16>(ref::Type::kBF16, static_cast<uint32_t>(v));
    if (HasFailure()) return;
  }
}

// A memory row may start at any byte.
TEST(Dtypes, LoadsAndStoresAtAnyAddress) {
  unsigned char bytes[40] = {};
  for (size_t shift = 0; shift < 9; ++shift) {
    moe::store(bytes + shift, 2, 1.25);
    EXPECT_EQ(moe::load<double>(bytes + shift, 2), 1.25);
    moe::store(bytes + shift, 3, int32_t{-7});
    EXPECT_EQ(moe::load<int32_t>(bytes + shift, 3), -7);
  }
}

}  // namespace
