// A forced kernel is the one whose code runs: each says so itself while it works.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cpu/permute_with_ep_grad.h"
#include "moe/permute_with_ep.h"
#include "moe/permute_with_ep_grad.h"

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

}  // namespace
}  // namespace moe
