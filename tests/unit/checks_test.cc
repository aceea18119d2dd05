// What the checks promise beyond what an operator's rejections show.
#include "core/checks.h"

#include <gtest/gtest.h>

#include <limits>
#include <locale>

#include "core/text.h"

namespace {

using moe::DType;
using moe::TensorDesc;

TEST(Checks, ShapeText) {
  EXPECT_EQ(moe::shape_text(TensorDesc::contiguous(DType::kF32, {})), "[]");
  EXPECT_EQ(moe::shape_text(TensorDesc::contiguous(DType::kF32, {3})), "[3]");
  EXPECT_EQ(moe::shape_text(TensorDesc::contiguous(DType::kF32, {4, -2})), "[4, -2]");
  TensorDesc wrong;
  wrong.num_dims = -3;
  EXPECT_EQ(moe::shape_text(wrong), "[]");
}

TEST(Checks, NumElements) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(moe::num_elements(TensorDesc::contiguous(DType::kF32, {4, 5})), 20);
  EXPECT_EQ(moe::num_elements(TensorDesc::contiguous(DType::kF32, {kMax, kMax, 0})), 0);
}

TEST(Checks, ErrorsCarryTheirArgument) {
  const moe::NullArgument error("top_k", "3, but needs 4");
  EXPECT_EQ(error.argument(), "top_k");
  EXPECT_STREQ(error.what(), "top_k: 3, but needs 4");
  const moe::IndexError index("sorted_indices: bad", 5, -1);
  EXPECT_EQ(index.slot(), 5);
  EXPECT_EQ(index.value(), -1);
}

class Grouping : public std::numpunct<char> {
  char do_thousands_sep() const override { return ','; }
  std::string do_grouping() const override { return "\3"; }
};

// A program's locale must not put commas into the numbers of a message.
TEST(Checks, TextIgnoresTheLocale) {
  const std::locale before = std::locale::global(std::locale(std::locale(), new Grouping));
  const std::string got = moe::text(1234567, " rows");
  std::locale::global(before);
  EXPECT_EQ(got, "1234567 rows");
}

}  // namespace
