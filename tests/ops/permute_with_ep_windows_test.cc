// Windows, padding, and routings of every kind.
#include <cstring>

#include "ops/permute_case.h"
#include "ref/routing.h"

namespace test {
namespace {

using moe::DType;
using moe::EpRange;

PermuteCase routed(std::vector<int64_t> experts, int64_t num_tokens, int64_t top_k) {
  return {.dtype = DType::kBF16,
          .probs_dtype = DType::kF32,
          .num_tokens = num_tokens,
          .top_k = top_k,
          .hidden_size = 70,
          .experts = std::move(experts)};
}

// 6 tokens x 2 experts: every window there is, so some cut inside an expert, have one row or none.
TEST(PermuteWindows, All) {
  for (int64_t begin = 0; begin <= 12; ++begin) {
    for (int64_t end = begin; end <= 12; ++end) {
      PermuteCase c = routed(ref::uniform_routing(6, 2, 4, 5), 6, 2);
      c.ep_range = EpRange{begin, end};
      expect_matches_oracle(c);
      c.rows = end - begin + 3;
      c.probs_rows = end - begin + 5;
      expect_matches_oracle(c);
    }
  }
}

TEST(PermuteWindows, AbsentTakesTheRowsThatThereAre) {
  for (const int64_t rows : {0, 1, 7, 15, 16, 40}) {
    expect_matches_oracle({.probs_dtype = DType::kF16, .rows = rows});
  }
}

// Padding large enough to be filled in several pieces.
TEST(PermuteWindows, MuchPadding) {
  expect_matches_oracle({.hidden_size = 33000, .ep_range = EpRange{4, 6}, .rows = 50});
}

// The windows of all ranks, one after another, are the rows of one rank with all.
TEST(PermuteWindows, OfRanksTileTheWhole) {
  PermuteCase c = routed(ref::zipf_routing(50, 4, 16, 9), 50, 4);
  c.num_experts = 16;
  c.counts_dtype = DType::kI64;
  const Permuted whole = PermuteProblem(c).run({});
  std::vector<int64_t> counts(16);
  std::memcpy(counts.data(), whole.counts.data(), whole.counts.size());
  std::vector<std::byte> tokens, probs;
  for (int64_t rank = 0; rank < 3; ++rank) {
    c.ep_range = moe::ep_range_of_rank(counts, rank, 3);
    c.rows = c.probs_rows = -1;
    const Permuted part = PermuteProblem(c).run({});
    EXPECT_EQ(part.sorted, whole.sorted);
    tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
    probs.insert(probs.end(), part.probs.begin(), part.probs.end());
  }
  EXPECT_EQ(tokens, whole.tokens);
  EXPECT_EQ(probs, whole.probs);
}

// Long stretches of tokens without a row in the window, between others that have one: whatever is
// packed at a time, some of it is empty.
TEST(PermuteRouting, StretchesOfTokensOutside) {
  std::vector<int64_t> experts(4096);
  int64_t outside = 0;
  for (size_t token = 0; token < experts.size(); ++token) {
    experts[token] = static_cast<int64_t>(token / 600 % 2);
    outside += experts[token] == 0;
  }
  PermuteCase c = routed(experts, 4096, 1);
  c.ep_range = EpRange{outside, 4096};
  c.num_threads = 1;
  for (const int64_t hidden_size : {5, 70, 600}) {
    c.hidden_size = hidden_size;
    expect_matches_oracle(c);
  }
}

TEST(PermuteRouting, AllTokensToOneExpert) {
  PermuteCase c = routed(ref::all_to_one_routing(9, 4, 3), 9, 4);
  for (const int64_t experts : {4, 5, 3}) {
    c.num_experts = experts;  // with 3, no slot is routed
    c.counts_dtype = DType::kI32;
    expect_matches_oracle(c);
  }
}

TEST(PermuteRouting, OneTokenNamesAnExpertTwice) {
  expect_matches_oracle(routed({2, 2, 0, 1, 1, 1, 0, 2, 2}, 3, 3));
}

TEST(PermuteRouting, SparseAndUnroutedIds) {
  PermuteCase c = routed(
      {0x7fffffff, 5, -1, 1 << 20, int64_t{1} << 31, 5, -7, INT64_MIN, INT64_MAX, 0, 0x7fffffff, 3},
      4, 3);
  c.index_dtype = DType::kI64;
  expect_matches_oracle(c);
  c.num_experts = 6;
  c.counts_dtype = DType::kI64;
  c.ep_range = EpRange{2, 9};
  expect_matches_oracle(c);
}

}  // namespace
}  // namespace test
