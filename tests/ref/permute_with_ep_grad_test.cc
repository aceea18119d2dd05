#include "ref/permute_with_ep_grad.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace {

std::vector<float> floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The sample of the operator's page.
struct Sample {
  std::vector<float> grad{2, 2, 1, 1, 3, 3, 2, 2};
  std::vector<float> probs{.2f, .5f, .4f, .4f};
  std::vector<int32_t> indices{2, 0, 4, 1, 5, 3};
  ref::PermuteWithEpGrad problem{
      .permuted_tokens_grad = {.data = grad.data(), .stride = 2},
      .sorted_indices = {.data = indices.data(), .type = ref::Type::kI32},
      .permuted_probs_grad = {.data = probs.data()},
      .num_tokens = 3,
      .top_k = 2,
      .hidden_size = 2,
      .begin = 1,
      .end = 5};
};

TEST(RefPermuteWithEpGrad, Sample) {
  const Sample sample;
  EXPECT_EQ(floats(ref::tokens_grad(sample.problem)), (std::vector<float>{1, 1, 4, 4, 3, 3}));
  EXPECT_EQ(floats(ref::probs_grad(sample.problem)),
            (std::vector<float>{.5f, 0, .4f, .2f, 0, .4f}));
}

TEST(RefPermuteWithEpGrad, AddsInAscendingOrderOfSlots) {
  Sample sample;
  sample.grad = {1e8f, 0, 1, 0, -1e8f, 0, 0, 0};
  sample.indices = {1, 2, 3, 3, 1, 2};
  sample.problem.num_tokens = 2;
  sample.problem.top_k = 3;
  // (1e8 + 1) - 1e8 loses the 1; (-1e8 + 1e8) + 1 keeps it.
  EXPECT_EQ(floats(ref::tokens_grad(sample.problem)), (std::vector<float>{0, 0, 1, 0}));
}

TEST(RefPermuteWithEpGrad, MinusZeroOnlyWhenEveryTermIs) {
  Sample sample;
  sample.grad = {-0.0f, -0.0f, -0.0f, 0.0f, 0, 0, 0, 0};
  sample.indices = {1, 2, 1, 0, 9, 1};
  const std::vector<float> out = floats(ref::tokens_grad(sample.problem));
  EXPECT_TRUE(std::signbit(out[0]));
  for (const size_t i : {1u, 2u, 3u, 4u, 5u}) EXPECT_FALSE(std::signbit(out[i])) << i;
}

}  // namespace
