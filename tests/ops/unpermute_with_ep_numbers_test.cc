// Which numbers come out: probs of exactly 0, signs of zeros, infinities, separate roundings, the
// order of a dot product.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "ops/unpermute_case.h"
#include "ref/routing.h"
#include "support/effort.h"

namespace test {
namespace {

using moe::DType;
using moe::TensorDesc;

constexpr float kInf = std::numeric_limits<float>::infinity();

class UnpermuteWithEpNumbers : public testing::TestWithParam<DType> {};

TEST_P(UnpermuteWithEpNumbers, AnyBits) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    for (const int64_t zero_probs : {0, 2, 5}) {
      expect_matches_oracle({.dtype = GetParam(),
                             .probs_dtype = GetParam(),
                             .num_tokens = 9,
                             .top_k = 1 + static_cast<int64_t>(seed % 4),
                             .hidden_size = 131,
                             .zero_probs = zero_probs,
                             .values = Values::kAnyBits,
                             .seed = seed});
      if (HasFailure()) return;
    }
  }
}

TEST_P(UnpermuteWithEpNumbers, EveryProbZero) {
  for (const bool with_probs_grad : {false, true}) {
    expect_matches_oracle({.dtype = GetParam(),
                           .probs_dtype = GetParam(),
                           .hidden_size = 70,
                           .zero_probs = 1,
                           .with_probs_grad = with_probs_grad,
                           .values = Values::kAnyBits});
  }
}

TEST_P(UnpermuteWithEpNumbers, NoProbsGrad) {
  for (const int64_t h : {5, 64, 200}) {
    expect_matches_oracle({.dtype = GetParam(),
                           .probs_dtype = GetParam(),
                           .hidden_size = h,
                           .ep_range = moe::EpRange{2, 14},
                           .with_probs_grad = false,
                           .values = Values::kAnyBits});
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, UnpermuteWithEpNumbers, testing::ValuesIn(kFloatDTypes),
                         dtype_param_name);

// Two slots of one token, H elements.
struct Pair {
  int64_t hidden_size;
  std::vector<float> rows;
  std::vector<float> probs;

  std::vector<float> forward(const std::string& kernel) const {
    const int32_t indices[] = {0, 1};
    std::vector<float> out(static_cast<size_t>(hidden_size), NAN);
    moe::UnpermuteWithEp::plan(
        {.permuted_tokens = TensorDesc::contiguous(DType::kF32, {2, hidden_size}),
         .sorted_indices = TensorDesc::contiguous(DType::kI32, {2}),
         .probs = TensorDesc::contiguous(DType::kF32, {1, 2}),
         .top_k = 2,
         .out = TensorDesc::contiguous(DType::kF32, {1, hidden_size})},
        {.kernel = kernel})
        .bind({rows.data(), indices, probs.data(), out.data()})
        .run();
    return out;
  }

  struct Gradient {
    std::vector<float> rows, probs;
  };
  Gradient backward(const std::string& kernel, const std::vector<float>& grad) const {
    const int32_t indices[] = {0, 1};
    Gradient out{std::vector<float>(rows.size(), NAN), {NAN, NAN}};
    const auto plan = moe::UnpermuteWithEpGrad::plan(
        {.unpermuted_tokens_grad = TensorDesc::contiguous(DType::kF32, {1, hidden_size}),
         .sorted_indices = TensorDesc::contiguous(DType::kI32, {2}),
         .permuted_tokens = TensorDesc::contiguous(DType::kF32, {2, hidden_size}),
         .probs = TensorDesc::contiguous(DType::kF32, {1, 2}),
         .top_k = 2,
         .permuted_tokens_grad = TensorDesc::contiguous(DType::kF32, {2, hidden_size}),
         .probs_grad = TensorDesc::contiguous(DType::kF32, {1, 2})},
        {.kernel = kernel});
    std::vector<char> workspace(plan.workspace_bytes());
    plan.bind({grad.data(), indices, rows.data(), probs.data(), out.rows.data(), out.probs.data()})
        .run(workspace.data());
    return out;
  }
};

// Wherever it stands among many: a prob that is NaN is not 0, so its token is NaN.
TEST(UnpermuteWithEpZeros, ATokenOfProbNaNIsNaN) {
  constexpr int64_t kTokens = 200;
  const TensorDesc tokens = TensorDesc::contiguous(DType::kF32, {kTokens, 1});
  std::vector<int32_t> indices(kTokens);
  std::vector<float> rows(kTokens, 1), probs(kTokens);
  for (size_t t = 0; t < probs.size(); ++t) {
    indices[t] = static_cast<int32_t>(t);
    probs[t] = t % 3 == 1 ? NAN : t % 3 == 2 ? 0 : 2;
  }
  for (const std::string& kernel : moe::UnpermuteWithEp::kernel_names()) {
    SCOPED_TRACE(kernel);
    std::vector<float> out(kTokens, -1);
    moe::UnpermuteWithEp::plan({.permuted_tokens = tokens,
                                .sorted_indices = TensorDesc::contiguous(DType::kI32, {kTokens}),
                                .probs = tokens,
                                .out = tokens},
                               {.kernel = kernel})
        .bind({rows.data(), indices.data(), probs.data(), out.data()})
        .run();
    for (size_t t = 0; t < out.size(); ++t) {
      if (t % 3 == 1) {
        EXPECT_TRUE(std::isnan(out[t])) << "token " << t;
      } else {
        EXPECT_EQ(out[t], probs[t]) << "token " << t;
      }
    }
  }
}

TEST(UnpermuteWithEpZeros, ARowOfProbZeroIsNotRead) {
  for (const std::string& kernel : moe::UnpermuteWithEp::kernel_names()) {
    for (const float zero : {0.0f, -0.0f}) {
      SCOPED_TRACE(testing::Message() << kernel << " " << zero);
      const Pair pair{2, {NAN, kInf, 3, -0.0f}, {zero, 2}};
      const std::vector<float> out = pair.forward(kernel);
      EXPECT_EQ(out, (std::vector<float>{6, 0}));
      EXPECT_FALSE(std::signbit(out[1])) << "the skipped slot contributes +0";
      // It is read for its own dot product, and for nothing else.
      const Pair::Gradient grad = pair.backward(kernel, {1, 1});
      EXPECT_EQ(grad.rows, (std::vector<float>{0, 0, 2, 2}));
      EXPECT_FALSE(std::signbit(grad.rows[0]) || std::signbit(grad.rows[1]));
      EXPECT_TRUE(std::isnan(grad.probs[0]));
      EXPECT_EQ(grad.probs[1], 3);
    }
  }
}

TEST(UnpermuteWithEpZeros, SubnormalProbsAreNotZero) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  for (const std::string& kernel : moe::UnpermuteWithEp::kernel_names()) {
    const Pair pair{1, {kInf, 1}, {tiny, 1}};
    EXPECT_EQ(pair.forward(kernel)[0], kInf) << kernel;
    EXPECT_EQ(pair.backward(kernel, {8}).rows[0], 8 * tiny) << kernel;
  }
}

TEST(UnpermuteWithEpZeros, SignsOfSums) {
  for (const std::string& kernel : moe::UnpermuteWithEp::kernel_names()) {
    SCOPED_TRACE(kernel);
    const std::vector<float> out = Pair{3, {-0.0f, 0, 1, 0, 0, -1}, {1, -1}}.forward(kernel);
    EXPECT_TRUE(std::signbit(out[0]));   // -0 * 1 + 0 * -1
    EXPECT_FALSE(std::signbit(out[1]));  // 0 + -0
    EXPECT_EQ(out[2], 2);
  }
}

// (1 + 2^-12)^2 is 1 + 2^-11 + 2^-24: rounded before the sum its last bit is gone.
TEST(UnpermuteWithEpRounding, ProductsRoundBeforeTheyAreAdded) {
  const float x = 1 + 0x1p-12f;
  for (const std::string& kernel : moe::UnpermuteWithEp::kernel_names()) {
    SCOPED_TRACE(kernel);
    for (const int64_t h : {1, 8, 64, 200}) {
      Pair pair{h, std::vector<float>(static_cast<size_t>(2 * h), x), {x, x}};
      for (int64_t i = 0; i < h; ++i) pair.rows[static_cast<size_t>(i)] = -(1 + 0x1p-11f);
      pair.probs[0] = 1;
      EXPECT_EQ(pair.forward(kernel), std::vector<float>(static_cast<size_t>(h), 0));
    }
    Pair pair{65, std::vector<float>(130), {1, 1}};
    std::vector<float> grad(65);
    pair.rows[0] = -(1 + 0x1p-11f), grad[0] = 1;
    pair.rows[64] = x, grad[64] = x;
    EXPECT_EQ(pair.backward(kernel, grad).probs[0], 0);
  }
}

// Elements that cancel only in the canonical order, at every place.
TEST(UnpermuteWithEpGradDot, CanonicalOrder) {
  for (const std::string& kernel : moe::UnpermuteWithEpGrad::kernel_names()) {
    SCOPED_TRACE(kernel);
    for (size_t p = 0; p < 64; ++p) {
      Pair pair{256, std::vector<float>(512), {1, 1}};
      pair.rows[p] = 1e8f, pair.rows[p + 64] = 1, pair.rows[p + 192] = -1e8f;
      // Of another partial sum, so that it survives.
      pair.rows[(p + 32) % 64 + 128] = 3;
      EXPECT_EQ(pair.backward(kernel, std::vector<float>(256, 1)).probs[0], 3) << p;
    }
    // The tree: 1e8 and -1e8 meet at a distance of 2, before the ones do.
    Pair pair{64, std::vector<float>(128), {1, 1}};
    pair.rows[0] = 1e8f, pair.rows[2] = -1e8f, pair.rows[1] = 1, pair.rows[3] = 1;
    EXPECT_EQ(pair.backward(kernel, std::vector<float>(64, 1)).probs[0], 2);
    pair.rows[1] = -1e8f, pair.rows[2] = 1;
    EXPECT_EQ(pair.backward(kernel, std::vector<float>(64, 1)).probs[0], 0);
  }
}

}  // namespace
}  // namespace test
