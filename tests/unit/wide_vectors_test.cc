// Which problems take vectors of 512 bits: all, but where an Intel processor is faster without
// them.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "moe/permute_with_ep.h"
#include "moe/permute_with_ep_grad.h"
#include "moe/unpermute_with_ep.h"
#include "moe/unpermute_with_ep_grad.h"
#include "ops/kernel.h"

namespace moe {
namespace {

constexpr int64_t kHiddenSize = 1000, kTopK = 2;
constexpr int64_t kTokenBytes = (1 + kTopK) * kHiddenSize * 4;

TensorDesc tokens(int64_t count) {
  return TensorDesc::contiguous(DType::kF32, {count, kHiddenSize});
}
TensorDesc rows(int64_t num_tokens) { return tokens(kTopK * num_tokens); }
TensorDesc slots(int64_t num_tokens) {
  return TensorDesc::contiguous(DType::kI32, {kTopK * num_tokens});
}
TensorDesc probs(int64_t num_tokens) {
  return TensorDesc::contiguous(DType::kF32, {num_tokens, kTopK});
}

// What the system says of the processor, which the library finds out by itself.
class WideVectors : public testing::Test {
 protected:
  void SetUp() override {
    if (!forced_kernel().empty()) GTEST_SKIP() << "a kernel is forced";
    std::ostringstream all;
    all << std::ifstream("/proc/cpuinfo").rdbuf();
    const std::string text = all.str();
    const std::vector<std::string> names = PermuteWithEpGrad::kernel_names();
    best_ = names.front();
    const bool has_choice =
        best_.starts_with("AVX3") && std::find(names.begin(), names.end(), "AVX2") != names.end();
    is_intel_ = has_choice && text.find("GenuineIntel") != std::string::npos;
    has_float16_ = text.find("avx512_fp16") != std::string::npos;
  }
  // AVX2 where less than `bytes` are moved, else the best; the best always where that is 0.
  template <class PlanOf>
  void expect_avx2_below(int64_t bytes, PlanOf&& plan_of) {
    const int64_t most = std::max<int64_t>(1, (bytes - 1) / kTokenBytes);
    EXPECT_EQ(plan_of(most).kernel_name(), bytes ? "AVX2" : best_) << bytes;
    EXPECT_EQ(plan_of(most + 1).kernel_name(), best_) << bytes;
    EXPECT_EQ(
        plan_of(most).explain().find(best_ + ": leaves it to a later one") != std::string::npos,
        bytes != 0);
  }
  template <class PlanOf>
  void expect_avx2(PlanOf&& plan_of) {
    for (const int64_t num_tokens : {1, 100000}) {
      EXPECT_EQ(plan_of(num_tokens).kernel_name(), "AVX2") << num_tokens;
    }
  }

  static constexpr int64_t kShortSum = 4000000, kShortGrad = 12000000;
  std::string best_;
  bool is_intel_, has_float16_;
};

TEST_F(WideVectors, OfSums) {
  const auto grad = [](int64_t count) {
    return PermuteWithEpGrad::plan({.permuted_tokens_grad = rows(count),
                                    .sorted_indices = slots(count),
                                    .top_k = kTopK,
                                    .tokens_grad = tokens(count)});
  };
  const auto unpermute = [](int64_t count) {
    return UnpermuteWithEp::plan({.permuted_tokens = rows(count),
                                  .sorted_indices = slots(count),
                                  .probs = probs(count),
                                  .top_k = kTopK,
                                  .out = tokens(count)});
  };
  if (is_intel_ && !has_float16_) {
    expect_avx2(grad);
    expect_avx2(unpermute);
  } else {
    expect_avx2_below(is_intel_ ? kShortSum : 0, grad);
    expect_avx2_below(is_intel_ ? kShortSum : 0, unpermute);
  }
}

TEST_F(WideVectors, OfGradients) {
  expect_avx2_below(is_intel_ && !has_float16_ ? kShortGrad : 0, [](int64_t count) {
    return UnpermuteWithEpGrad::plan({.unpermuted_tokens_grad = tokens(count),
                                      .sorted_indices = slots(count),
                                      .top_k = kTopK,
                                      .permuted_tokens_grad = rows(count)});
  });
}

TEST_F(WideVectors, OfCopies) {
  expect_avx2_below(0, [](int64_t count) {
    return PermuteWithEp::plan({.tokens = tokens(count),
                                .indices = TensorDesc::contiguous(DType::kI32, {count, kTopK}),
                                .permuted_tokens = rows(count),
                                .sorted_indices = slots(count)});
  });
}

}  // namespace
}  // namespace moe
