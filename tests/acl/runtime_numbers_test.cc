// 16-bit numbers and sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "acl/acl.h"

namespace {

// What 16 bits mean, term by term; exponent 31 is an exponent like the others.
double value_of(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double fraction = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

uint32_t bits_of(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

TEST(Float16, EveryValueReadsAsItsTerms) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const float got = aclFloat16ToFloat(static_cast<uint16_t>(bits));
    ASSERT_EQ(bits_of(got), bits_of(static_cast<float>(value_of(static_cast<uint16_t>(bits)))))
        << bits;
  }
  EXPECT_EQ(aclFloat16ToFloat(0x7C00), 65536.0f);
  EXPECT_EQ(aclFloat16ToFloat(0xFC00), -65536.0f);
}

TEST(Float16, EveryValueComesBack) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const uint16_t saturated = (half & 0x7FFF) < 0x7C00 ? half : (half & 0x8000) | 0x7BFF;
    ASSERT_EQ(aclFloatToFloat16(aclFloat16ToFloat(half)), saturated) << bits;
  }
}

// Between each two neighbours: the middle goes to the even one, a step beside it to the nearer one.
TEST(Float16, RoundsToNearestEven) {
  for (uint32_t low = 0; low < 0x7BFF; ++low) {
    const uint32_t high = low + 1;
    const auto middle = static_cast<float>(
        (value_of(static_cast<uint16_t>(low)) + value_of(static_cast<uint16_t>(high))) / 2);
    for (const uint32_t sign : {0u, 0x8000u}) {
      const float side = sign == 0 ? 1.0f : -1.0f;
      const float down = std::nextafter(middle, 0.0f) * side;
      const float up = std::nextafter(middle, 1e9f) * side;
      ASSERT_EQ(aclFloatToFloat16(middle * side), sign | (low % 2 == 0 ? low : high)) << low;
      ASSERT_EQ(aclFloatToFloat16(down), sign | low) << low;
      ASSERT_EQ(aclFloatToFloat16(up), sign | high) << low;
    }
  }
}

TEST(Float16, Saturates) {
  using Limits = std::numeric_limits<float>;
  for (const float large : {65519.99f, 65520.0f, 65536.0f, Limits::max(), Limits::infinity()}) {
    EXPECT_EQ(aclFloatToFloat16(large), 0x7BFF) << large;
    EXPECT_EQ(aclFloatToFloat16(-large), 0xFBFF) << large;
  }
  EXPECT_EQ(aclFloatToFloat16(Limits::quiet_NaN()), 0x7BFF);
  EXPECT_EQ(aclFloatToFloat16(std::copysign(Limits::quiet_NaN(), -1.0f)), 0xFBFF);
  EXPECT_EQ(aclFloatToFloat16(Limits::denorm_min()), 0);
  EXPECT_EQ(aclFloatToFloat16(-Limits::denorm_min()), 0x8000);
}

TEST(DataTypeSize, OfEveryType) {
  const struct {
    aclDataType type;
    size_t size;
  } cases[] = {{ACL_DT_UNDEFINED, 0}, {ACL_FLOAT, 4},  {ACL_FLOAT16, 2},   {ACL_INT8, 1},
               {ACL_INT32, 4},        {ACL_UINT8, 1},  {ACL_INT16, 2},     {ACL_UINT16, 2},
               {ACL_UINT32, 4},       {ACL_INT64, 8},  {ACL_UINT64, 8},    {ACL_DOUBLE, 8},
               {ACL_BOOL, 1},         {ACL_STRING, 0}, {ACL_COMPLEX64, 8}, {ACL_COMPLEX128, 16},
               {ACL_BF16, 2},         {ACL_INT4, 1},   {ACL_UINT1, 1},     {ACL_COMPLEX32, 4}};
  for (const auto& c : cases) EXPECT_EQ(aclDataTypeSize(c.type), c.size) << c.type;
  EXPECT_EQ(aclDataTypeSize(static_cast<aclDataType>(5)), 0u);
  EXPECT_EQ(aclDataTypeSize(static_cast<aclDataType>(1000)), 0u);
}

}  // namespace
