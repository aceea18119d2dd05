#include "core/fp_mode.h"

#include <gtest/gtest.h>

#include <cfenv>

namespace {

volatile float three = 3;
float third() { return 1.0f / three; }

TEST(FpMode, RoundsToNearestAndGivesBackWhatItFound) {
  const float nearest = third();
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST}) {
    std::fesetround(mode);
    float inside;
    {
      const moe::FpMode set;
      inside = third();
    }
    const int after = std::fegetround();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(inside, nearest);
    EXPECT_EQ(after, mode);
  }
}

#if defined(__x86_64__)
TEST(FpMode, KeepsSubnormals) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  volatile float tiny = 0x1p-140f, half = 0.5f;
  const float flushed = tiny * half;
  float kept;
  {
    const moe::FpMode set;
    kept = tiny * half;
  }
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(flushed, 0.0f);
  EXPECT_EQ(kept, 0x1p-141f);
  EXPECT_EQ(after & ~0x3fu, (before | 0x8040) & ~0x3fu);
}
#endif

}  // namespace
