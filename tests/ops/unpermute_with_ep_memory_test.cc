// What plan, bind and run of unpermute and its gradient allocate.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "moe/unpermute_with_ep.h"
#include "moe/unpermute_with_ep_grad.h"
#include "support/allocations.h"

namespace test {
namespace {

using moe::DType;
using moe::TensorDesc;
using moe::UnpermuteWithEp;
using moe::UnpermuteWithEpGrad;

// Tensors of megabytes, on every kernel: a run may take the thread library's small objects, a plan
// its own state.
class UnpermuteWithEpMemory : public testing::Test {
 protected:
  static constexpr int64_t kTokens = 512, kTopK = 4, kHidden = 1024, kSlots = kTokens * kTopK;

  UnpermuteWithEpMemory() : indices_(kSlots) { std::iota(indices_.begin(), indices_.end(), 0); }

  template <class MakeCall>
  static void expect_little(MakeCall&& make_call, size_t most_workspace) {
    moe::BoundCall call;
    EXPECT_LE(allocated_by([&] { call = make_call(); }), 4096u);
    EXPECT_LE(call.workspace_bytes(), most_workspace);
    std::vector<char> workspace(call.workspace_bytes());
    call.run(workspace.data());  // starts the threads
    EXPECT_LE(allocated_by([&] { call.run(workspace.data()); }), 16384u);
  }

  const TensorDesc rows_desc_ = TensorDesc::contiguous(DType::kF32, {kSlots, kHidden});
  const TensorDesc tokens_desc_ = TensorDesc::contiguous(DType::kF32, {kTokens, kHidden});
  const TensorDesc indices_desc_ = TensorDesc::contiguous(DType::kI32, {kSlots});
  const TensorDesc probs_desc_ = TensorDesc::contiguous(DType::kF32, {kTokens, kTopK});
  std::vector<float> rows_ = std::vector<float>(kSlots * kHidden), rows_grad_ = rows_;
  std::vector<float> tokens_ = std::vector<float>(kTokens * kHidden);
  std::vector<float> probs_ = std::vector<float>(kSlots, 0.5f), probs_grad_ = probs_;
  std::vector<int32_t> indices_;
};

TEST_F(UnpermuteWithEpMemory, NothingOfTheTensorsSize) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer owns malloc";
  for (const std::string& kernel : UnpermuteWithEp::kernel_names()) {
    SCOPED_TRACE(kernel);
    const UnpermuteWithEp::Args args{.permuted_tokens = rows_desc_,
                                     .sorted_indices = indices_desc_,
                                     .probs = probs_desc_,
                                     .top_k = kTopK,
                                     .out = tokens_desc_,
                                     .check_indices = true};
    const moe::Engine engine{.num_threads = 2, .kernel = kernel};
    expect_little(
        [&] {
          return UnpermuteWithEp::plan(args, engine)
              .bind({rows_.data(), indices_.data(), probs_.data(), tokens_.data()});
        },
        kSlots / 8 + 64);
  }
}

// The gradient's workspace has an integer for each row.
TEST_F(UnpermuteWithEpMemory, NothingOfTheTensorsSizeInTheGradient) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer owns malloc";
  for (const std::string& kernel : UnpermuteWithEpGrad::kernel_names()) {
    SCOPED_TRACE(kernel);
    const UnpermuteWithEpGrad::Args args{.unpermuted_tokens_grad = tokens_desc_,
                                         .sorted_indices = indices_desc_,
                                         .permuted_tokens = rows_desc_,
                                         .probs = probs_desc_,
                                         .top_k = kTopK,
                                         .permuted_tokens_grad = rows_desc_,
                                         .probs_grad = probs_desc_,
                                         .check_indices = true};
    const moe::Engine engine{.num_threads = 2, .kernel = kernel};
    expect_little(
        [&] {
          return UnpermuteWithEpGrad::plan(args, engine)
              .bind({tokens_.data(), indices_.data(), rows_.data(), probs_.data(),
                     rows_grad_.data(), probs_grad_.data()});
        },
        kSlots * 4 + 64);
  }
}

}  // namespace
}  // namespace test
