// The oracle is only worth its independence when it is right itself: its conversions against
// constants from the formats' definitions and against exact arithmetic in double.
#include "ref/dtypes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace {

using ref::narrow;
using ref::Type;
using ref::widen;

uint32_t bits(float value) { return std::bit_cast<uint32_t>(value); }
float value(Type type, int pattern) {
  return std::bit_cast<float>(widen(type, static_cast<uint16_t>(pattern)));
}

TEST(RefDtypes, WidensKnownValues) {
  EXPECT_EQ(value(Type::kF16, 0x3c00), 1.0f);
  EXPECT_EQ(value(Type::kF16, 0xc100), -2.5f);
  EXPECT_EQ(value(Type::kF16, 0x0001), 0x1p-24f);
  EXPECT_EQ(value(Type::kF16, 0x03ff), 0x1.ff8p-15f);
  EXPECT_EQ(value(Type::kF16, 0x0400), 0x1p-14f);
  EXPECT_EQ(value(Type::kF16, 0x7bff), 65504.0f);
  EXPECT_EQ(value(Type::kF16, 0xfc00), -INFINITY);
  EXPECT_EQ(value(Type::kBF16, 0x3f80), 1.0f);
  EXPECT_EQ(value(Type::kBF16, 0x0001), 0x1p-133f);
  EXPECT_EQ(value(Type::kBF16, 0x7f80), INFINITY);
  EXPECT_TRUE(std::isnan(value(Type::kF16, 0x7c01)));
  EXPECT_TRUE(std::isnan(value(Type::kBF16, 0xff81)));
}

TEST(RefDtypes, WidenedBfloat16IsTheUpperHalf) {
  for (uint32_t v = 0; v < 0x10000; ++v) {
    if ((v & 0x7fff) > 0x7f80) continue;
    ASSERT_EQ(widen(Type::kBF16, static_cast<uint16_t>(v)), v << 16);
  }
}

TEST(RefDtypes, NarrowUndoesWiden) {
  for (const Type type : {Type::kF16, Type::kBF16}) {
    for (uint32_t v = 0; v < 0x10000; ++v) {
      const auto v16 = static_cast<uint16_t>(v);
      if (std::isnan(value(type, static_cast<int>(v)))) {
        ASSERT_TRUE(std::isnan(value(type, narrow(type, widen(type, v16)))));
      } else {
        ASSERT_EQ(narrow(type, widen(type, v16)), v16);
      }
    }
  }
}

// Around every midpoint of two neighbours the float32 below it goes down, the one above it up, and
// the midpoint to the even pattern. `infinity`: one ulp behind the largest finite value counts as
// infinity's place.
void check_neighbourhoods(Type type, int infinity, double behind_largest) {
  for (int v = 0; v < infinity; ++v) {
    const double upper = v + 1 == infinity ? behind_largest : value(type, v + 1);
    const double middle = (value(type, v) + upper) / 2;
    const uint32_t m = bits(static_cast<float>(middle));
    ASSERT_EQ(static_cast<double>(std::bit_cast<float>(m)), middle);
    const int even = v % 2 == 0 ? v : v + 1;
    for (const uint32_t sign : {0u, 1u}) {
      ASSERT_EQ(narrow(type, (m - 1) | sign << 31), static_cast<uint32_t>(v) | sign << 15) << v;
      ASSERT_EQ(narrow(type, m | sign << 31), static_cast<uint32_t>(even) | sign << 15) << v;
      ASSERT_EQ(narrow(type, (m + 1) | sign << 31), static_cast<uint32_t>(v + 1) | sign << 15) << v;
    }
  }
}

TEST(RefDtypes, Float16RoundsToNearestEven) { check_neighbourhoods(Type::kF16, 0x7c00, 65536.0); }

TEST(RefDtypes, Bfloat16RoundsToNearestEven) { check_neighbourhoods(Type::kBF16, 0x7f80, 0x1p128); }

TEST(RefDtypes, NarrowsTheExtremes) {
  EXPECT_EQ(narrow(Type::kF16, bits(INFINITY)), 0x7c00);
  EXPECT_EQ(narrow(Type::kF16, bits(-3e38f)), 0xfc00);
  EXPECT_EQ(narrow(Type::kF16, 1), 0);
  EXPECT_EQ(narrow(Type::kF16, 0x80000001), 0x8000);
  EXPECT_EQ(narrow(Type::kBF16, 0x00007fff), 0);
  EXPECT_EQ(narrow(Type::kBF16, 0x00008001), 1);
  EXPECT_TRUE(std::isnan(value(Type::kBF16, narrow(Type::kBF16, 0x7f800001))));
  EXPECT_TRUE(std::isnan(value(Type::kF16, narrow(Type::kF16, 0xff800001))));
}

}  // namespace
