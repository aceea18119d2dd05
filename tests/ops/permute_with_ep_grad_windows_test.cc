// Windows: what belongs to the rank, what does not, and that nothing else is read. Rows behind the
// window's lie on memory that faults.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "ops/few_tokens.h"
#include "ops/grad_case.h"
#include "ref/routing.h"
#include "support/effort.h"

namespace test {
namespace {

using moe::DType;
using moe::EpRange;

constexpr int64_t kI32Min = std::numeric_limits<int32_t>::min();
constexpr int64_t kI32Max = std::numeric_limits<int32_t>::max();
constexpr int64_t kI64Min = std::numeric_limits<int64_t>::min();
constexpr int64_t kI64Max = std::numeric_limits<int64_t>::max();

TEST(PermuteWithEpGradWindows, Sample) {
  // R*K rows are declared and R are filled, as the page's sample does it.
  const float grad[16] = {2, 2, 1, 1, 3, 3, 2, 2, NAN, NAN, NAN}, probs[8] = {.2f, .5f, .4f, .4f};
  const int32_t indices[] = {2, 0, 4, 1, 5, 3};
  const auto plan = moe::PermuteWithEpGrad::plan(
      {.permuted_tokens_grad = moe::TensorDesc::contiguous(DType::kF32, {8, 2}),
       .sorted_indices = moe::TensorDesc::contiguous(DType::kI32, {6}),
       .permuted_probs_grad = moe::TensorDesc::contiguous(DType::kF32, {8}),
       .top_k = 2,
       .ep_range = EpRange{1, 5},
       .tokens_grad = moe::TensorDesc::contiguous(DType::kF32, {3, 2}),
       .probs_grad = moe::TensorDesc::contiguous(DType::kF32, {3, 2})});
  float tokens_grad[6], probs_grad[6];
  plan.bind({grad, indices, probs, tokens_grad, probs_grad}).run();
  EXPECT_EQ(std::vector<float>(tokens_grad, tokens_grad + 6),
            (std::vector<float>{1, 1, 4, 4, 3, 3}));
  EXPECT_EQ(std::vector<float>(probs_grad, probs_grad + 6),
            (std::vector<float>{.5f, 0, .4f, .2f, 0, .4f}));
}

TEST(PermuteWithEpGradWindows, EveryWindowOfASmallProblem) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (int64_t begin = 0; begin <= 10; ++begin) {
      for (int64_t end = begin; end <= 10; ++end) {
        for (const int64_t extra : {0, 1, 10}) {
          expect_matches_oracle({.dtype = dtype,
                                 .probs_dtype = DType::kF16,
                                 .top_k = 2,
                                 .ep_range = EpRange{begin, end},
                                 .rows = end - begin + extra,
                                 .probs_rows = end - begin + extra / 2,
                                 .values = Values::kAnyBits,
                                 .seed = static_cast<uint64_t>(begin * 11 + end)});
        }
      }
    }
  }
}

TEST(PermuteWithEpGradWindows, AbsentRangeIsTheRowsOfTheTokens) {
  for (const int64_t rows : {0, 1, 7, 14, 15, 16, 40}) {
    for (const int64_t extra : {0, 9}) {
      expect_matches_oracle({.probs_dtype = DType::kF32, .rows = rows, .probs_rows = rows + extra});
    }
  }
}

// Indices as data: whatever they hold, rows outside the window are not touched.
GradCase hostile(DType index_dtype, std::vector<int64_t> indices) {
  GradCase c{.index_dtype = index_dtype,
             .probs_dtype = DType::kF32,
             .num_tokens = 6,
             .top_k = 2,
             .ep_range = EpRange{3, 7},
             .indices = std::move(indices)};
  return c;
}

TEST(PermuteWithEpGradWindows, IndicesFarOutside) {
  expect_both_match(
      hostile(DType::kI32, {2, 3, 6, 7, -1, -3, kI32Min, kI32Max, kI32Min + 3, 4, -4, 12}));
  // Values whose lower 32 bits fall into the window.
  const int64_t wrap = int64_t{1} << 32;
  expect_both_match(hostile(DType::kI64, {wrap + 4, 4, kI64Min, kI64Max, kI64Min + 3, -wrap + 5, 3,
                                          6, kI32Max, kI32Min, 2, 7}));
  for (const DType index : {DType::kI32, DType::kI64}) {
    GradCase absent = hostile(index, {kI32Min, 0, -1, 3, kI32Max, 4, -7, 2, 5, 1, 4, 100});
    absent.ep_range.reset();
    absent.rows = 4;
    expect_both_match(absent);
  }
}

TEST(PermuteWithEpGradWindows, DuplicatesAreReadTwice) {
  expect_both_match(hostile(DType::kI32, {3, 3, 3, 3, 6, 6, 0, 0, 5, 4, 4, 5}));
  expect_both_match(hostile(DType::kI64, std::vector<int64_t>(12, 4)));
  expect_both_match(hostile(DType::kI32, std::vector<int64_t>(12, 0)));
}

TEST(PermuteWithEpGradWindows, AllOutsideGivesPlusZero) {
  for (const DType dtype : kFloatDTypes) {
    GradCase c = hostile(DType::kI32, std::vector<int64_t>(12, -1));
    c.dtype = dtype;
    c.probs_dtype = dtype;
    c.hidden_size = 100;
    const GradProblem problem(c);
    const Outputs out = problem.run({});
    EXPECT_EQ(out.tokens, std::vector<std::byte>(out.tokens.size())) << c;
    EXPECT_EQ(out.probs, std::vector<std::byte>(out.probs.size())) << c;
  }
}

// A rank that received nothing, a batch without tokens, rows without elements.
TEST(PermuteWithEpGradWindows, EmptyTensors) {
  for (const DType dtype : kFloatDTypes) {
    for (const int64_t num_tokens : {0, 1, 5}) {
      for (const int64_t hidden_size : {0, 1, 33}) {
        const GradCase c{.dtype = dtype,
                         .probs_dtype = dtype,
                         .num_tokens = num_tokens,
                         .hidden_size = hidden_size};
        expect_matches_oracle(c);
        GradCase empty = c;
        empty.ep_range = EpRange{num_tokens, num_tokens};
        expect_matches_oracle(empty);
        empty.rows = empty.probs_rows = 4;
        expect_matches_oracle(empty);
      }
    }
  }
}

// Ranks whose windows tile all rows add up to the whole: exactly, as the values are small integers.
TEST(PermuteWithEpGradWindows, TilesAddUpToTheWhole) {
  constexpr int64_t kTokens = 24, kTopK = 4, kHidden = 19, kSlots = kTokens * kTopK;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    ref::Random random(seed);
    std::vector<float> grad(kSlots * kHidden), probs(kSlots);
    for (float& value : grad) value = static_cast<float>(random.below(9) - 4);
    for (float& value : probs) value = static_cast<float>(random.unit());
    const std::vector<int64_t> indices = ref::permutation(kSlots, seed);
    const auto run = [&](EpRange range) {
      const int64_t rows = range.end - range.begin;
      std::vector<float> out(kTokens * (kHidden + kTopK));
      moe::PermuteWithEpGrad::plan(
          {.permuted_tokens_grad = moe::TensorDesc::contiguous(DType::kF32, {rows, kHidden}),
           .sorted_indices = moe::TensorDesc::contiguous(DType::kI64, {kSlots}),
           .permuted_probs_grad = moe::TensorDesc::contiguous(DType::kF32, {rows}),
           .top_k = kTopK,
           .ep_range = range,
           .tokens_grad = moe::TensorDesc::contiguous(DType::kF32, {kTokens, kHidden}),
           .probs_grad = moe::TensorDesc::contiguous(DType::kF32, {kTokens, kTopK})})
          .bind({grad.data() + range.begin * kHidden, indices.data(), probs.data() + range.begin,
                 out.data(), out.data() + kTokens * kHidden})
          .run();
      return out;
    };
    std::vector<float> sum(kTokens * (kHidden + kTopK));
    for (int64_t begin = 0; begin < kSlots;) {
      const int64_t end = std::min(kSlots, begin + random.below(40));
      const std::vector<float> part = run({begin, end});
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
      begin = end;
    }
    EXPECT_EQ(sum, run({0, kSlots}));
  }
}

}  // namespace
}  // namespace test
