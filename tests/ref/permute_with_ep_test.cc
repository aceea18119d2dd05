// The oracle of PermuteWithEp on cases worked out by hand.
#include "ref/permute_with_ep.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ref {
namespace {

std::vector<float> floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Three tokens, two experts each; slot 3 names no expert.
struct Sample {
  std::vector<float> tokens = {1, 2, 3, 4, 5, 6};
  std::vector<int32_t> indices = {1, 0, 1, -1, 2, 1};
  std::vector<float> probs = {.1f, .2f, .3f, .4f, .5f, .6f};
  PermuteWithEp problem{.tokens = {tokens.data(), Type::kF32, 2},
                        .indices = {indices.data(), Type::kI32, 2},
                        .probs = {probs.data(), Type::kF32, 2},
                        .num_tokens = 3,
                        .top_k = 2,
                        .hidden_size = 2,
                        .num_experts = 3};
};

TEST(PermuteOracle, SortsStablyWithUnroutedSlotsLast) {
  Sample s;
  EXPECT_EQ(sorted_indices(s.problem), (std::vector<int64_t>{1, 0, 2, 5, 4, 3}));
  EXPECT_EQ(tokens_per_expert(s.problem), (std::vector<int64_t>{1, 3, 1}));
  s.problem.num_experts = 2;  // expert 2 is one too many now: it joins slot 3, behind it
  EXPECT_EQ(sorted_indices(s.problem), (std::vector<int64_t>{1, 0, 2, 4, 5, 3}));
}

TEST(PermuteOracle, CopiesTheWindowAndPads) {
  Sample s;
  s.problem.begin = 1;
  s.problem.end = 4;
  EXPECT_EQ(floats(permuted_tokens(s.problem, 4)), (std::vector<float>{1, 2, 3, 4, 5, 6, 0, 0}));
  EXPECT_EQ(floats(permuted_probs(s.problem, 3)), (std::vector<float>{.1f, .3f, .6f}));
}

}  // namespace
}  // namespace ref
