// The arithmetic: order, one rounding, zeros' signs, infinities, subnormals, halfway cases.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "ops/grad_case.h"
#include "ref/dtypes.h"
#include "ref/routing.h"
#include "support/effort.h"

namespace test {
namespace {

using moe::DType;

// Adds rows of 16-bit or float32 patterns: tokens_grad[t] = rows[t*K] + ... + rows[t*K + K-1], on
// every kernel, and compares with the oracle.
template <class Bits>
void expect_sums(DType dtype, int64_t top_k, const std::vector<std::vector<Bits>>& rows) {
  const auto num_rows = static_cast<int64_t>(rows.size());
  const auto width = static_cast<int64_t>(rows[0].size());
  std::vector<Bits> grad;
  for (const auto& row : rows) grad.insert(grad.end(), row.begin(), row.end());
  std::vector<int32_t> indices(rows.size());
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int32_t>(i);
  const std::vector<std::byte> want =
      ref::tokens_grad({.permuted_tokens_grad = {grad.data(), ref_type(dtype), width},
                        .sorted_indices = {indices.data(), ref::Type::kI32},
                        .num_tokens = num_rows / top_k,
                        .top_k = top_k,
                        .hidden_size = width,
                        .end = num_rows});
  for (const std::string& kernel : moe::PermuteWithEpGrad::kernel_names()) {
    SCOPED_TRACE(testing::Message() << kernel << " " << moe::dtype_name(dtype));
    std::vector<std::byte> got(want.size());
    moe::PermuteWithEpGrad::plan(
        {.permuted_tokens_grad = moe::TensorDesc::contiguous(dtype, {num_rows, width}),
         .sorted_indices = moe::TensorDesc::contiguous(DType::kI32, {num_rows}),
         .top_k = top_k,
         .tokens_grad = moe::TensorDesc::contiguous(dtype, {num_rows / top_k, width})},
        {.kernel = kernel})
        .bind({.permuted_tokens_grad = grad.data(),
               .sorted_indices = indices.data(),
               .tokens_grad = got.data()})
        .run();
    expect_same_values("tokens_grad", dtype, got, want);
  }
}

using Row16 = std::vector<uint16_t>;

Row16 all_patterns() {
  Row16 row(0x10000);
  for (size_t v = 0; v < row.size(); ++v) row[v] = static_cast<uint16_t>(v);
  return row;
}

class PermuteWithEpGradHalves : public testing::TestWithParam<DType> {
 protected:
  ref::Type type() const { return ref_type(GetParam()); }
  float value(uint16_t bits) const { return std::bit_cast<float>(ref::widen(type(), bits)); }
  // For every pattern a second term, in the narrow format itself.
  Row16 derive(const std::function<float(float)>& fn) const {
    Row16 row = all_patterns();
    for (uint16_t& bits : row) {
      bits = ref::narrow(type(), std::bit_cast<uint32_t>(fn(value(bits))));
    }
    return row;
  }
  // Half of the distance from `v` to its neighbour behind it.
  float half_ulp(float v) const {
    if (v == 0 || !std::isfinite(v)) return 0;
    return std::ldexp(1.0f, std::ilogb(v) - (type() == ref::Type::kF16 ? 11 : 8));
  }
};

TEST_P(PermuteWithEpGradHalves, EveryPatternAlone) {
  expect_sums<uint16_t>(GetParam(), 1, {all_patterns()});
}

// The second term takes each value to just below, at and just above the midpoint to each neighbour;
// the third is too small for the narrow format but breaks ties in float32.
TEST_P(PermuteWithEpGradHalves, EveryMidpoint) {
  const Row16 all = all_patterns();
  std::vector<Row16> rows;
  for (const float sign : {1.0f, -1.0f}) {
    for (const float share : {0.98f, 0.995f, 1.0f, 1.005f, 1.02f}) {
      rows.push_back(all);
      rows.push_back(derive([&](float v) { return std::copysign(half_ulp(v), v) * sign * share; }));
    }
  }
  expect_sums(GetParam(), 2, rows);
  rows.clear();
  for (const float sign : {1.0f, -1.0f}) {
    for (const float tiny : {0x1p-10f, -0x1p-10f}) {
      rows.push_back(all);
      rows.push_back(derive([&](float v) { return std::copysign(half_ulp(v), v) * sign; }));
      rows.push_back(derive([&](float v) { return half_ulp(v) * tiny; }));
    }
  }
  expect_sums(GetParam(), 3, rows);
}

TEST_P(PermuteWithEpGradHalves, RandomPairsAndTriples) {
  ref::Random random(7);
  for (const int64_t top_k : {2, 3, 8}) {
    std::vector<Row16> rows(static_cast<size_t>(4 * top_k), Row16(effort(0x8000)));
    for (Row16& row : rows) {
      for (uint16_t& bits : row) bits = static_cast<uint16_t>(random.next());
    }
    expect_sums(GetParam(), top_k, rows);
  }
}

TEST_P(PermuteWithEpGradHalves, OverflowOnlyAtTheEnd) {
  const auto bits = [&](float v) { return ref::narrow(type(), std::bit_cast<uint32_t>(v)); };
  const float largest = value(GetParam() == DType::kF16 ? 0x7bff : 0x7f7f);
  // Float16's sums may leave its range in between and come back; bfloat16's range is float32's.
  expect_sums<uint16_t>(GetParam(), 3, {{bits(largest)}, {bits(largest)}, {bits(-largest)}});
  expect_sums<uint16_t>(GetParam(), 2, {{bits(largest)}, {bits(largest)}});
  expect_sums<uint16_t>(GetParam(), 2, {{bits(-largest)}, {bits(-half_ulp(largest))}});
}

INSTANTIATE_TEST_SUITE_P(DTypes, PermuteWithEpGradHalves,
                         testing::Values(DType::kF16, DType::kBF16), dtype_param_name);

using Row32 = std::vector<uint32_t>;

Row32 row32(std::initializer_list<float> values) {
  Row32 row;
  for (const float v : values) row.push_back(std::bit_cast<uint32_t>(v));
  return row;
}

TEST(PermuteWithEpGradNumbers, AscendingOrderInFloat32) {
  expect_sums<uint32_t>(DType::kF32, 3, {row32({1e8f}), row32({1}), row32({-1e8f})});
  expect_sums<uint32_t>(DType::kF32, 4,
                        {row32({1}), row32({0x1p-24f}), row32({0x1p-24f}), row32({-1})});
}

TEST(PermuteWithEpGradNumbers, NoFloat64Accumulator) {
  ref::Random random(8);
  std::vector<Row32> rows(64, Row32(257));
  for (Row32& row : rows) {
    for (uint32_t& bits : row) {
      bits = std::bit_cast<uint32_t>(static_cast<float>(random.unit() - 0.5));
    }
  }
  for (const int64_t top_k : {4, 8, 32}) expect_sums(DType::kF32, top_k, rows);
}

TEST(PermuteWithEpGradNumbers, AnyBitsOfEveryDType) {
  for (const DType dtype : kFloatDTypes) {
    for (const int64_t top_k : {1, 2, 5}) {
      expect_matches_oracle({.dtype = dtype,
                             .probs_dtype = dtype,
                             .num_tokens = effort(50),
                             .top_k = top_k,
                             .hidden_size = 130,
                             .ep_range = moe::EpRange{1, effort(50) * top_k - 1},
                             .values = Values::kAnyBits,
                             .seed = static_cast<uint64_t>(top_k)});
    }
  }
}

TEST(PermuteWithEpGradNumbers, SubnormalsOfFloat32AreKept) {
  expect_sums<uint32_t>(
      DType::kF32, 2,
      {{1, 2, 0x007fffff, 0x80000001, 0x00800000}, {1, 3, 1, 0x80000001, 0x80000001}});
}

// Signs of zero: K = 3 slots, each -0, +0 or outside the window, in all 27 combinations.
TEST(PermuteWithEpGradNumbers, MinusZeroOnlyWhenEverySlotIs) {
  for (const DType dtype : kFloatDTypes) {
    const auto bytes = static_cast<size_t>(moe::dtype_bytes(dtype));
    constexpr int64_t kWidth = 37;
    std::vector<std::byte> grad(2 * kWidth * bytes);  // row 0 of +0, row 1 of -0
    for (size_t i = kWidth + 1; i <= 2 * kWidth; ++i) grad[i * bytes - 1] = std::byte{0x80};
    std::vector<int32_t> indices;
    for (int32_t i = 0; i < 27; ++i) {
      for (const int32_t slot : {i / 9, i / 3 % 3, i % 3}) indices.push_back(slot);
    }
    for (const std::string& kernel : moe::PermuteWithEpGrad::kernel_names()) {
      std::vector<std::byte> out(27 * kWidth * bytes, std::byte{0xff});
      moe::PermuteWithEpGrad::plan(
          {.permuted_tokens_grad = moe::TensorDesc::contiguous(dtype, {2, kWidth}),
           .sorted_indices = moe::TensorDesc::contiguous(DType::kI32, {81}),
           .top_k = 3,
           .tokens_grad = moe::TensorDesc::contiguous(dtype, {27, kWidth})},
          {.kernel = kernel})
          .bind({.permuted_tokens_grad = grad.data(),
                 .sorted_indices = indices.data(),
                 .tokens_grad = out.data()})
          .run();
      for (size_t i = 0; i < 27 * kWidth; ++i) {
        const bool minus = i / kWidth == 13;  // 1, 1, 1 in base 3
        for (size_t b = 0; b < bytes; ++b) {
          ASSERT_EQ(out[i * bytes + b], std::byte(minus && b + 1 == bytes ? 0x80 : 0))
              << kernel << " " << moe::dtype_name(dtype) << " combination " << i / kWidth;
        }
      }
    }
  }
}

}  // namespace
}  // namespace test
