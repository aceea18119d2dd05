// What plan, bind and run allocate.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "moe/moe.h"
#include "support/allocations.h"

namespace test {
namespace {

using moe::DType;
using moe::PermuteWithEpGrad;
using moe::TensorDesc;

TEST(PermuteWithEpGradMemory, TheCounterCounts) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer owns malloc";
  EXPECT_GE(allocated_by([] { std::vector<char>(12345).front() = 1; }), 12345u);
  // Volatile: a block that nobody looks at need not be allocated.
  EXPECT_GE(allocated_by([] {
              void* volatile block = aligned_alloc(64, 6400);
              free(block);
            }),
            6400u);
}

// T, K, H of megabytes, with inner stride 1 and 2, on every kernel: a run may take the thread
// library's small objects, a plan its own state.
TEST(PermuteWithEpGradMemory, NothingOfTheTensorsSize) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer owns malloc";
  constexpr int64_t kTokens = 512, kTopK = 4, kHidden = 1024, kSlots = kTokens * kTopK;
  std::vector<float> grad(static_cast<size_t>(kSlots * kHidden * 2));
  std::vector<float> probs(kSlots), tokens_grad(kTokens * kHidden), probs_grad(kSlots);
  std::vector<int32_t> indices(kSlots);
  for (int32_t i = 0; i < kSlots; ++i) indices[static_cast<size_t>(i)] = i;
  for (const int64_t inner : {1, 2}) {
    for (const std::string& kernel : PermuteWithEpGrad::kernel_names()) {
      if (inner != 1 && kernel != "portable") continue;
      SCOPED_TRACE(testing::Message() << kernel << ", inner stride " << inner);
      const PermuteWithEpGrad::Args args{
          .permuted_tokens_grad =
              TensorDesc::strided(DType::kF32, {kSlots, kHidden}, {2 * kHidden, inner}),
          .sorted_indices = TensorDesc::contiguous(DType::kI32, {kSlots}),
          .permuted_probs_grad = TensorDesc::contiguous(DType::kF32, {kSlots}),
          .top_k = kTopK,
          .ep_range = moe::EpRange{0, kSlots},
          .tokens_grad = TensorDesc::contiguous(DType::kF32, {kTokens, kHidden}),
          .probs_grad = TensorDesc::contiguous(DType::kF32, {kTokens, kTopK}),
          .check_indices = true};
      const moe::Engine engine{.num_threads = 2, .kernel = kernel};
      moe::BoundCall call;
      const size_t by_plan = allocated_by([&] {
        call = PermuteWithEpGrad::plan(args, engine)
                   .bind({grad.data(), indices.data(), probs.data(), tokens_grad.data(),
                          probs_grad.data()});
      });
      EXPECT_LE(by_plan, 4096u);
      EXPECT_LE(call.workspace_bytes(), (size_t{1} << 20) + kSlots / 8);
      std::vector<char> workspace(call.workspace_bytes());
      call.run(workspace.data());  // starts the threads
      EXPECT_LE(allocated_by([&] { call.run(workspace.data()); }), 16384u);
    }
  }
}

}  // namespace
}  // namespace test
