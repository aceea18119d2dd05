// A forced kernel is the one whose code runs: each says so itself while it works.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cpu/last_target.h"
#include "moe/permute_with_ep.h"
#include "moe/permute_with_ep_grad.h"
#include "moe/unpermute_with_ep.h"
#include "moe/unpermute_with_ep_grad.h"
#include "ops/kernel.h"

namespace moe {
namespace {

TEST(ForcedKernel, IsTheOneThatRan) {
  constexpr int64_t kHiddenSize = 300;
  const std::vector<float> rows(2 * kHiddenSize, 1.0f);
  const std::vector<int32_t> indices = {1, 0};
  const auto names = PermuteWithEpGrad::kernel_names();
  ASSERT_EQ(names.back(), "portable");
  std::string all;
  for (const std::string& name : names) all += name + " ";
  RecordProperty("kernels", all);
  for (const std::string& name : names) {
    std::vector<float> out(kHiddenSize);
    cpu::last_target = nullptr;
    const auto plan = PermuteWithEpGrad::plan(
        {.permuted_tokens_grad = TensorDesc::contiguous(DType::kF32, {2, kHiddenSize}),
         .sorted_indices = TensorDesc::contiguous(DType::kI32, {2}),
         .top_k = 2,
         .tokens_grad = TensorDesc::contiguous(DType::kF32, {1, kHiddenSize})},
        {.kernel = name});
    plan.bind({.permuted_tokens_grad = rows.data(),
               .sorted_indices = indices.data(),
               .tokens_grad = out.data()})
        .run();
    ASSERT_NE(cpu::last_target.load(), nullptr) << name;
    EXPECT_EQ(cpu::last_target.load(), name);
    EXPECT_EQ(plan.kernel_name(), name);
    EXPECT_EQ(out, std::vector<float>(kHiddenSize, 2.0f));
  }
}

TEST(ForcedKernel, IsTheOneThatPermuted) {
  constexpr int64_t kHiddenSize = 300;
  const std::vector<float> token(kHiddenSize, 1.0f);
  const std::vector<int32_t> experts = {1, 0};
  for (const std::string& name : PermuteWithEp::kernel_names()) {
    std::vector<float> rows(2 * kHiddenSize);
    std::vector<int32_t> sorted(2);
    std::vector<std::byte> workspace(64);
    cpu::last_target = nullptr;
    const auto plan = PermuteWithEp::plan(
        {.tokens = TensorDesc::contiguous(DType::kF32, {1, kHiddenSize}),
         .indices = TensorDesc::contiguous(DType::kI32, {1, 2}),
         .permuted_tokens = TensorDesc::contiguous(DType::kF32, {2, kHiddenSize}),
         .sorted_indices = TensorDesc::contiguous(DType::kI32, {2})},
        {.kernel = name});
    ASSERT_LE(plan.workspace_bytes(), workspace.size());
    plan.bind({.tokens = token.data(),
               .indices = experts.data(),
               .permuted_tokens = rows.data(),
               .sorted_indices = sorted.data()})
        .run(workspace.data());
    ASSERT_NE(cpu::last_target.load(), nullptr) << name;
    EXPECT_EQ(cpu::last_target.load(), name);
    EXPECT_EQ(plan.kernel_name(), name);
    EXPECT_EQ(rows, std::vector<float>(2 * kHiddenSize, 1.0f));
  }
}

// Two rows of ones and the weights 1 and 2, for unpermute and its gradient.
struct UnpermuteExample {
  static constexpr int64_t kHiddenSize = 300;
  const TensorDesc rows_desc = TensorDesc::contiguous(DType::kF32, {2, kHiddenSize});
  const TensorDesc token_desc = TensorDesc::contiguous(DType::kF32, {1, kHiddenSize});
  const TensorDesc indices_desc = TensorDesc::contiguous(DType::kI32, {2});
  const TensorDesc probs_desc = TensorDesc::contiguous(DType::kF32, {1, 2});
  const std::vector<float> rows = std::vector<float>(2 * kHiddenSize, 1.0f), probs = {1, 2};
  const std::vector<int32_t> indices = {1, 0};
};

TEST(ForcedKernel, IsTheOneThatUnpermuted) {
  const UnpermuteExample e;
  for (const std::string& name : UnpermuteWithEp::kernel_names()) {
    std::vector<float> out(e.kHiddenSize);
    cpu::last_target = nullptr;
    const auto plan = UnpermuteWithEp::plan({.permuted_tokens = e.rows_desc,
                                             .sorted_indices = e.indices_desc,
                                             .probs = e.probs_desc,
                                             .top_k = 2,
                                             .out = e.token_desc},
                                            {.kernel = name});
    plan.bind({e.rows.data(), e.indices.data(), e.probs.data(), out.data()}).run();
    ASSERT_NE(cpu::last_target.load(), nullptr) << name;
    EXPECT_EQ(cpu::last_target.load(), name);
    EXPECT_EQ(plan.kernel_name(), name);
    EXPECT_EQ(out, std::vector<float>(e.kHiddenSize, 3.0f));
  }
}

TEST(ForcedKernel, IsTheOneThatTookTheGradientOfUnpermute) {
  const UnpermuteExample e;
  for (const std::string& name : UnpermuteWithEpGrad::kernel_names()) {
    std::vector<float> rows_grad(2 * e.kHiddenSize), probs_grad(2);
    std::vector<std::byte> workspace(64);
    cpu::last_target = nullptr;
    const auto plan = UnpermuteWithEpGrad::plan({.unpermuted_tokens_grad = e.token_desc,
                                                 .sorted_indices = e.indices_desc,
                                                 .permuted_tokens = e.rows_desc,
                                                 .probs = e.probs_desc,
                                                 .top_k = 2,
                                                 .permuted_tokens_grad = e.rows_desc,
                                                 .probs_grad = e.probs_desc},
                                                {.kernel = name});
    ASSERT_LE(plan.workspace_bytes(), workspace.size());
    plan.bind({e.rows.data(), e.indices.data(), e.rows.data(), e.probs.data(), rows_grad.data(),
               probs_grad.data()})
        .run(workspace.data());
    ASSERT_NE(cpu::last_target.load(), nullptr) << name;
    EXPECT_EQ(cpu::last_target.load(), name);
    EXPECT_EQ(plan.kernel_name(), name);
    EXPECT_EQ(probs_grad, std::vector<float>(2, 300.0f));
    std::vector<float> expected(e.kHiddenSize, 2.0f);
    expected.resize(2 * e.kHiddenSize, 1.0f);
    EXPECT_EQ(rows_grad, expected);
  }
}

// A kernel that takes problems from `least` on, and leaves those below `enough` to the next one.
template <int least, int enough>
Kernel<int, int> example_kernel(const char* name) {
  return {.name = name,
          .refuses = [](const int& n) { return n < least ? text(n, " is too small") : ""; },
          .workspace_bytes = [](const int&) { return size_t{0}; },
          .bind = {},
          .is_slower = [](const int& n) { return n < enough; }};
}

TEST(ChooseKernel, TakesTheFirstThatNeitherRefusesNorYieldsUnlessForced) {
  if (!forced_kernel().empty()) GTEST_SKIP() << "a kernel is forced";
  KernelList<int, int> kernels = {example_kernel<1, 100>("long"), example_kernel<5, 0>("short")};
  kernels.push_back(
      {"last", [](const int&) { return std::string(); }, [](const int&) { return size_t{0}; }, {}});
  const auto name = [&](int n, const char* forced = "") {
    return choose(kernels, n, {.kernel = forced}).name;
  };
  EXPECT_EQ(name(100), "long");
  EXPECT_EQ(name(99), "short");
  EXPECT_EQ(name(5), "short");
  EXPECT_EQ(name(4), "last");
  EXPECT_EQ(name(4, "long"), "long");
  EXPECT_EQ(name(99, "long"), "long");
  EXPECT_THROW(name(4, "short"), InvalidArgument);
  EXPECT_EQ(explain(kernels, 4),
            "long: leaves it to a later one, which is faster here\n"
            "short: 4 is too small\nlast: takes it\n");
}

}  // namespace
}  // namespace moe
