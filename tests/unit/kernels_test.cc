// A forced kernel is not only reported: its code is what wrote the output.
#include <gtest/gtest.h>

#include "cpu/permute_with_ep_grad.h"
#include "moe/moe.h"

namespace {

TEST(Kernels, TheForcedOneReallyRuns) {
  const float grad[] = {1, 2, 3, 4};
  const int32_t indices[] = {1, 0};
  for (const std::string& name : moe::PermuteWithEpGrad::kernel_names()) {
    float out[4] = {};
    moe::cpu::last_target = nullptr;
    moe::PermuteWithEpGrad::plan(
        {.permuted_tokens_grad = moe::TensorDesc::contiguous(moe::DType::kF32, {2, 2}),
         .sorted_indices = moe::TensorDesc::contiguous(moe::DType::kI32, {2}),
         .tokens_grad = moe::TensorDesc::contiguous(moe::DType::kF32, {2, 2})},
        {.kernel = name})
        .bind({.permuted_tokens_grad = grad, .sorted_indices = indices, .tokens_grad = out})
        .run();
    ASSERT_NE(moe::cpu::last_target.load(), nullptr);
    EXPECT_EQ(name, moe::cpu::last_target.load());
    EXPECT_EQ(out[0], 3);
  }
}

}  // namespace
