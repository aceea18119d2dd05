// Sizes: rows around every vector width, few and many experts per token, nothing at all.
#include "ops/permute_case.h"
#include "support/effort.h"

namespace test {
namespace {

using moe::DType;

class PermuteDTypes : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(All, PermuteDTypes, testing::ValuesIn(kFloatDTypes), dtype_param_name);

TEST_P(PermuteDTypes, EveryHiddenSize) {
  const int64_t most = 300 / moe::dtype_bytes(GetParam()) + 1;  // past four vectors of 64 bytes
  for (int64_t h = 0; h <= most; h += kSanitized ? 3 : 1) {
    expect_matches_oracle({.dtype = GetParam(),
                           .probs_dtype = GetParam(),
                           .hidden_size = h,
                           .ep_range = moe::EpRange{2, 13},
                           .seed = static_cast<uint64_t>(h)});
    if (HasFailure()) return;
  }
}

// Through the pieces of a long row, with what they leave.
TEST_P(PermuteDTypes, LongRows) {
  for (const int64_t bytes : {504, 512, 520, 1016, 1024, 1032, 4104, 14336}) {
    expect_matches_oracle(
        {.dtype = GetParam(), .hidden_size = bytes / moe::dtype_bytes(GetParam()), .seed = 3});
    if (HasFailure()) return;
  }
}

TEST_P(PermuteDTypes, ProbsOfEveryOtherDType) {
  for (const DType probs : kFloatDTypes) {
    if ((probs == DType::kF64) != (GetParam() == DType::kF64)) continue;
    expect_matches_oracle(
        {.dtype = GetParam(), .probs_dtype = probs, .ep_range = moe::EpRange{3, 11}});
  }
}

TEST(PermuteShapes, ExpertsPerToken) {
  for (const int64_t k : {1, 2, 8, 31, 256, 512, 513, 1023, 1024, 1025, 2000}) {
    expect_matches_oracle({.probs_dtype = DType::kF32,
                           .num_tokens = 3,
                           .top_k = k,
                           .ep_range = moe::EpRange{1, 3 * k - 1}});
    if (testing::Test::HasFailure()) return;
  }
}

TEST(PermuteShapes, IndexDTypes) {
  for (const DType index : {DType::kI32, DType::kI64}) {
    for (const DType sorted : {DType::kI32, DType::kI64}) {
      for (const DType counts : {DType::kI32, DType::kI64}) {
        expect_matches_oracle({.index_dtype = index,
                               .probs_dtype = DType::kBF16,
                               .sorted_dtype = sorted,
                               .counts_dtype = counts,
                               .num_experts = 6});
      }
    }
  }
}

TEST(PermuteShapes, FlatIndices) {
  expect_matches_oracle({.probs_dtype = DType::kF16, .num_tokens = 17, .top_k = 1, .flat = true});
}

// A rank that reads more than 2 MiB, whose rows kernels ask for long before they copy them.
TEST(PermuteShapes, RowsFarAhead) {
  const auto rank = [](int64_t num_tokens, int64_t top_k, int64_t hidden_size) {
    const int64_t slots = num_tokens * top_k;
    return PermuteCase{.dtype = DType::kBF16,
                       .probs_dtype = DType::kF32,
                       .num_tokens = num_tokens,
                       .top_k = top_k,
                       .hidden_size = hidden_size,
                       .ep_range = moe::EpRange{slots / 8, slots / 2},
                       .num_threads = 2};
  };
  for (const PermuteCase& c : {rank(1400, 8, 1030), rank(2900, 1, 2048), rank(90, 3, 40001)}) {
    expect_matches_oracle(c);
  }
}

TEST(PermuteShapes, NothingAtAll) {
  expect_matches_oracle(
      {.probs_dtype = DType::kF32, .counts_dtype = DType::kI32, .num_tokens = 0, .num_experts = 4});
  expect_matches_oracle({.num_tokens = 0, .ep_range = moe::EpRange{0, 0}, .rows = 3});
  expect_matches_oracle(
      {.probs_dtype = DType::kF32, .hidden_size = 0, .rows = 20, .probs_rows = 16});
  expect_matches_oracle({.counts_dtype = DType::kI64, .num_experts = 0});
}

// Many small cases of every kind at once.
TEST(PermuteShapes, RandomCases) {
  ref::Random random(20);
  for (int64_t i = 0; i < effort(600); ++i) {
    PermuteCase c{.dtype = kFloatDTypes[random.below(3)],
                  .num_tokens = random.below(20),
                  .top_k = 1 + random.below(9),
                  .hidden_size = random.below(200),
                  .seed = random.next(),
                  .num_threads = 1 + static_cast<int>(random.below(3))};
    if (random.below(2)) c.probs_dtype = kFloatDTypes[random.below(3)];
    if (random.below(2)) c.num_experts = random.below(12);
    if (c.num_experts && random.below(2)) c.counts_dtype = DType::kI32;
    c.sorted_dtype = random.below(2) ? DType::kI64 : DType::kI32;
    if (random.below(3)) {
      const int64_t begin = random.below(c.num_slots() + 1);
      c.ep_range = moe::EpRange{begin, begin + random.below(c.num_slots() - begin + 1)};
      c.rows = c.ep_range->end - begin + random.below(4);
    } else {
      c.rows = random.below(c.num_slots() + 5);
    }
    c.tokens.stride = random.below(2) ? -1 : c.hidden_size + random.below(5);
    expect_matches_oracle(c);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace test
