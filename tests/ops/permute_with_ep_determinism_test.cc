// The same bits from every kernel and any number of threads; outputs that do not fit the caches.
#include "ops/permute_case.h"
#include "ref/routing.h"
#include "support/effort.h"

namespace test {
namespace {

using moe::DType;

// What the first kernel gives on one thread, and all others on any number.
void expect_same_everywhere(const PermuteCase& c) {
  const PermuteProblem problem(c);
  const Permuted want = problem.expected();
  for (const std::string& kernel : moe::PermuteWithEp::kernel_names()) {
    for (const int threads : {1, 2, 3, 7}) {
      SCOPED_TRACE(testing::Message() << kernel << " on " << threads << " threads: " << c);
      EXPECT_TRUE(problem.run({.num_threads = threads, .kernel = kernel}) == want);
    }
  }
}

TEST(PermuteDeterminism, ManySlots) {
  const int64_t num_tokens = effort(12000);
  PermuteCase c{.dtype = DType::kF16,
                .probs_dtype = DType::kF32,
                .counts_dtype = DType::kI32,
                .num_tokens = num_tokens,
                .top_k = 8,
                .hidden_size = 3,
                .num_experts = 64};
  c.experts = ref::zipf_routing(num_tokens, 8, 70, 4);
  expect_same_everywhere(c);
  c.num_experts.reset();
  c.counts_dtype.reset();
  expect_same_everywhere(c);
}

// Streaming stores, with rows that begin anywhere in a line.
TEST(PermuteDeterminism, LargeOutputs) {
  for (const int64_t h : {2048, 2051, 40}) {
    for (const size_t slack : {0, 2}) {
      const int64_t num_tokens = 1200000 / h;
      expect_same_everywhere({.dtype = DType::kBF16,
                              .probs_dtype = DType::kBF16,
                              .num_tokens = num_tokens,
                              .top_k = 4,
                              .hidden_size = h,
                              .ep_range = moe::EpRange{num_tokens, 4 * num_tokens - 5},
                              .out_slack_bytes = slack});
    }
  }
}

// Few tokens: threads share their rows.
TEST(PermuteDeterminism, FewLongRows) {
  expect_same_everywhere(
      {.probs_dtype = DType::kF32, .num_tokens = 2, .top_k = 3, .hidden_size = 300001});
}

}  // namespace
}  // namespace test
