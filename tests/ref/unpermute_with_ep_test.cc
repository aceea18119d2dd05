#include "ref/unpermute_with_ep.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace {

std::vector<float> floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Two tokens with two experts each; the window has the global rows 1 and 2 of 4.
struct Small {
  std::vector<float> permuted{1, 2, 3, 4};
  std::vector<float> probs{.5f, .25f, 2, 0};
  std::vector<float> grad{10, 20, 30, 40};
  std::vector<int32_t> indices{1, 0, 3, 2};
  ref::Unpermute problem{.permuted_tokens = {.data = permuted.data(), .stride = 2},
                         .sorted_indices = {.data = indices.data(), .type = ref::Type::kI32},
                         .probs = {.data = probs.data(), .stride = 2},
                         .unpermuted_tokens_grad = {.data = grad.data(), .stride = 2},
                         .num_tokens = 2,
                         .top_k = 2,
                         .hidden_size = 2,
                         .begin = 1,
                         .end = 3};
};

TEST(RefUnpermuteWithEp, Small) {
  Small small;
  EXPECT_EQ(floats(ref::unpermuted(small.problem)), (std::vector<float>{.5f, 1, 0, 0}));
  small.probs[3] = -1;
  EXPECT_EQ(floats(ref::unpermuted(small.problem)), (std::vector<float>{.5f, 1, -3, -4}));
  small.problem.probs.data = nullptr;
  EXPECT_EQ(floats(ref::unpermuted(small.problem)), (std::vector<float>{1, 2, 3, 4}));
}

TEST(RefUnpermuteWithEp, MinusZeroOnlyWhenEveryTermIs) {
  Small small;
  small.permuted = {-0.0f, 0.0f, -0.0f, -0.0f};
  small.indices = {1, 2, 2, 0};
  small.probs = {1, 1, 1, 1};
  const std::vector<float> out = floats(ref::unpermuted(small.problem));
  EXPECT_TRUE(std::signbit(out[0]));
  for (const size_t i : {1u, 2u, 3u}) EXPECT_FALSE(std::signbit(out[i])) << i;
}

TEST(RefUnpermuteWithEpGrad, Small) {
  Small small;
  // The last slot's prob is 0: its row gets zeros, and its dot product is taken all the same.
  EXPECT_EQ(floats(ref::permuted_tokens_grad(small.problem, 3)),
            (std::vector<float>{5, 10, 0, 0, 0, 0}));
  EXPECT_EQ(floats(ref::unpermute_probs_grad(small.problem)), (std::vector<float>{50, 0, 0, 250}));
}

TEST(RefUnpermuteWithEpGrad, DotHas64PartialSums) {
  // Partial 0 is (1e8 + 1) - 1e8 = 0 and partial 32 is 3: element by element it would be 4.
  std::vector<float> row(160), grad(160, 1);
  row[0] = 1e8f, row[32] = 3, row[64] = 1, row[128] = -1e8f;
  Small small;
  small.problem.permuted_tokens = {.data = row.data(), .stride = 160};
  small.problem.unpermuted_tokens_grad = {.data = grad.data(), .stride = 160};
  small.problem.num_tokens = small.problem.top_k = 1;
  small.problem.hidden_size = 160;
  small.problem.end = 2;
  EXPECT_EQ(floats(ref::unpermute_probs_grad(small.problem)), (std::vector<float>{3}));
}

}  // namespace
