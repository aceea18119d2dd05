// Outputs of megabytes, past which kernels may store around the caches, cut rows into parts and use
// every thread; at every alignment of rows.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/grad_case.h"
#include "ops/large_windows.h"
#include "support/effort.h"

namespace test {
namespace {

using moe::DType;

class PermuteWithEpGradLarge : public testing::TestWithParam<DType> {
 protected:
  // More than two threads' second-level caches hold on most machines.
  static constexpr int64_t kBytes = (kSanitized ? 2 : 5) << 20;
  int64_t elements() const { return kBytes / moe::dtype_bytes(GetParam()); }

  // A window of an eighth of the slots, so that the oracle and the random numbers cost little.
  GradCase large(int64_t hidden_size, int64_t top_k) const {
    const int64_t tokens = elements() / hidden_size + 1, slots = tokens * top_k;
    return {.dtype = GetParam(),
            .num_tokens = tokens,
            .top_k = top_k,
            .hidden_size = hidden_size,
            .ep_range = moe::EpRange{slots / 8, slots / 4},
            .seed = static_cast<uint64_t>(hidden_size),
            .num_threads = 2};
  }
};

TEST_P(PermuteWithEpGradLarge, RowsOfAnyLength) {
  for (const int64_t h : {1, 31, 100, 517, 1024, 1027, 7168}) {
    if (kSanitized && h < 100) continue;
    expect_matches_oracle(large(h, h % 2 ? 1 : 3));
  }
}

TEST_P(PermuteWithEpGradLarge, OutputsAtAnyAddress) {
  for (size_t slack = 0; slack < 69; slack += kSanitized ? 33 : 11) {
    GradCase c = large(1033, 1);
    c.out_slack_bytes = slack;
    c.tokens.slack_bytes = slack / 2;
    expect_matches_oracle(c);
  }
}

TEST_P(PermuteWithEpGradLarge, FewLongRows) {
  for (const int64_t tokens : {1, 3}) {
    for (const int threads : {1, 2, 7}) {
      GradCase c = large(elements() / tokens + 5, 2);
      c.num_tokens = tokens;
      c.ep_range = moe::EpRange{0, tokens};
      c.num_threads = threads;
      c.out_slack_bytes = 2;
      expect_matches_oracle(c);
    }
  }
}

// Nothing to read, and no address to read from.
TEST_P(PermuteWithEpGradLarge, EmptyWindowWithoutInput) {
  for (const int64_t tokens : {1, 20}) {
    const int64_t h = elements() / tokens;
    std::vector<std::byte> out(static_cast<size_t>(tokens * h * moe::dtype_bytes(GetParam())));
    const std::vector<int32_t> indices(static_cast<size_t>(tokens * 2), 0);
    for (const std::string& kernel : moe::PermuteWithEpGrad::kernel_names()) {
      std::fill(out.begin(), out.end(), std::byte{0xff});
      moe::PermuteWithEpGrad::plan(
          {.permuted_tokens_grad = moe::TensorDesc::contiguous(GetParam(), {0, h}),
           .sorted_indices = moe::TensorDesc::contiguous(DType::kI32, {tokens * 2}),
           .top_k = 2,
           .ep_range = moe::EpRange{0, 0},
           .tokens_grad = moe::TensorDesc::contiguous(GetParam(), {tokens, h})},
          {.num_threads = 4, .kernel = kernel})
          .bind({.sorted_indices = indices.data(), .tokens_grad = out.data()})
          .run();
      EXPECT_EQ(std::count(out.begin(), out.end(), std::byte{0}), static_cast<int64_t>(out.size()))
          << kernel;
    }
  }
}

TEST(PermuteWithEpGradLargeWindow, RowsFarAhead) {
  for (const GradCase& c : large_windows<GradCase>()) expect_matches_oracle(c);
}

INSTANTIATE_TEST_SUITE_P(DTypes, PermuteWithEpGradLarge, testing::ValuesIn(kFloatDTypes),
                         dtype_param_name);

}  // namespace
}  // namespace test
