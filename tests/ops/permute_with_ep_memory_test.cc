// What plan, bind and run of the forward allocate.
#include <gtest/gtest.h>

#include <vector>

#include "moe/moe.h"
#include "support/allocations.h"

namespace test {
namespace {

using moe::DType;
using moe::PermuteWithEp;
using moe::TensorDesc;

// Tensors of megabytes, with the number of experts and without, on every kernel: a run may take the
// thread library's small objects, a plan its own state.
TEST(PermuteWithEpMemory, NothingOfTheTensorsSize) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer owns malloc";
  constexpr int64_t kTokens = 8192, kTopK = 4, kHidden = 64, kSlots = kTokens * kTopK;
  const std::vector<float> tokens(kTokens * kHidden), probs(kSlots);
  std::vector<float> rows(kSlots * kHidden), row_probs(kSlots);
  std::vector<int32_t> experts(kSlots), sorted(kSlots);
  for (int32_t i = 0; i < kSlots; ++i) experts[static_cast<size_t>(i)] = i % 16;
  for (const bool dense : {true, false}) {
    for (const std::string& kernel : PermuteWithEp::kernel_names()) {
      SCOPED_TRACE(testing::Message() << kernel << (dense ? ", 16 experts" : ", any experts"));
      PermuteWithEp::Args args{
          .tokens = TensorDesc::contiguous(DType::kF32, {kTokens, kHidden}),
          .indices = TensorDesc::contiguous(DType::kI32, {kTokens, kTopK}),
          .probs = TensorDesc::contiguous(DType::kF32, {kTokens, kTopK}),
          .ep_range = moe::EpRange{0, kSlots},
          .permuted_tokens = TensorDesc::contiguous(DType::kF32, {kSlots, kHidden}),
          .sorted_indices = TensorDesc::contiguous(DType::kI32, {kSlots}),
          .permuted_probs = TensorDesc::contiguous(DType::kF32, {kSlots})};
      if (dense) args.num_experts = 16;
      const moe::Engine engine{.num_threads = 2, .kernel = kernel};
      moe::BoundCall call;
      EXPECT_LE(allocated_by([&] {
                  call = PermuteWithEp::plan(args, engine)
                             .bind({.tokens = tokens.data(),
                                    .indices = experts.data(),
                                    .probs = probs.data(),
                                    .permuted_tokens = rows.data(),
                                    .sorted_indices = sorted.data(),
                                    .permuted_probs = row_probs.data()});
                }),
                4096u);
      // A few ints per expert and thread; without their number, three per slot.
      EXPECT_LE(call.workspace_bytes(), dense ? 4096u : 4096u + 3 * 4 * size_t{kSlots});
      std::vector<char> workspace(call.workspace_bytes());
      call.run(workspace.data());  // starts the threads
      EXPECT_LE(allocated_by([&] { call.run(workspace.data()); }), 16384u);
    }
  }
}

}  // namespace
}  // namespace test
