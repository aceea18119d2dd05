// The same bits for any number of threads, any neighbours, any floating-point mode, any run.
#include <gtest/gtest.h>

#include <cfenv>
#include <thread>

#include "ops/grad_case.h"
#include "ref/routing.h"
#include "support/control_register.h"
#include "support/effort.h"

namespace test {
namespace {

using moe::DType;

GradCase large(DType dtype) {
  const int64_t tokens = effort(700);
  return {.dtype = dtype,
          .probs_dtype = dtype,
          .num_tokens = tokens,
          .top_k = 4,
          .hidden_size = 513,
          .ep_range = moe::EpRange{tokens / 2, tokens * 3},
          .seed = 11};
}

class PermuteWithEpGradDeterminism : public testing::TestWithParam<DType> {};

TEST_P(PermuteWithEpGradDeterminism, ThreadsKernelsAndRuns) {
  const GradCase c = large(GetParam());
  const GradProblem problem(c);
  const Outputs want = problem.expected();
  for (const std::string& kernel : moe::PermuteWithEpGrad::kernel_names()) {
    for (const int threads : {1, 2, 3, 7}) {
      SCOPED_TRACE(testing::Message() << kernel << " on " << threads << " threads");
      for (int run = 0; run < 3; ++run) {
        expect_same(c, problem.run({.num_threads = threads, .kernel = kernel}, run), want);
      }
    }
  }
}

TEST_P(PermuteWithEpGradDeterminism, FewTokensManyThreads) {
  for (const int64_t tokens : {1, 2, 5}) {
    for (const int threads : {2, 7, 64}) {
      GradCase c = large(GetParam());
      c.num_tokens = tokens;
      c.hidden_size = 7169;
      c.ep_range = moe::EpRange{1, tokens * 4};
      c.num_threads = threads;
      expect_matches_oracle(c);
    }
  }
}

// A token's sum does not depend on the tokens beside it.
TEST_P(PermuteWithEpGradDeterminism, EachTokenAlone) {
  GradCase c = large(GetParam());
  c.num_tokens = 40;
  c.hidden_size = 77;
  c.ep_range = moe::EpRange{30, 130};
  const GradProblem problem(c);
  const Outputs together = problem.run({});
  const size_t row_bytes = together.tokens.size() / 40, probs_bytes = together.probs.size() / 40;
  for (int64_t t = 0; t < 40; ++t) {
    auto args = problem.args();
    auto pointers = problem.inputs();
    // The range must not exceed the slots: a window without a range takes any index.
    args.ep_range.reset();
    std::vector<int32_t> indices(4);
    for (int64_t k = 0; k < 4; ++k) {
      const auto all = static_cast<const int32_t*>(pointers.sorted_indices);
      indices[static_cast<size_t>(k)] = all[t * 4 + k] - 30;
    }
    args.sorted_indices = moe::TensorDesc::contiguous(DType::kI32, {4});
    args.tokens_grad.shape[0] = args.probs_grad->shape[0] = 1;
    pointers.sorted_indices = indices.data();
    std::vector<std::byte> row(row_bytes), probs(probs_bytes);
    pointers.tokens_grad = row.data();
    pointers.probs_grad = probs.data();
    moe::PermuteWithEpGrad::plan(args).bind(pointers).run();
    const auto at = [&](const std::vector<std::byte>& from, size_t bytes) {
      const auto begin = from.begin() + t * static_cast<int64_t>(bytes);
      return std::vector<std::byte>(begin, begin + static_cast<int64_t>(bytes));
    };
    ASSERT_EQ(row, at(together.tokens, row_bytes)) << "token " << t;
    ASSERT_EQ(probs, at(together.probs, probs_bytes)) << "token " << t;
  }
}

#if defined(__x86_64__)

TEST_P(PermuteWithEpGradDeterminism, AnyFloatingPointModeOfTheCaller) {
  GradCase c = large(GetParam());
  c.values = Values::kAnyBits;
  c.num_tokens = 64;
  c.ep_range = moe::EpRange{0, 250};
  const GradProblem any_bits(c);
  GradCase subnormal = c;
  subnormal.values = Values::kFinite;
  const GradProblem finite(subnormal);
  for (const GradProblem* problem : {&any_bits, &finite}) {
    const Outputs want = problem->expected();
    for (const std::string& kernel : moe::PermuteWithEpGrad::kernel_names()) {
      for (const unsigned mode : kCallerModes) {
        for (const int threads : {1, 3}) {
          Outputs got;
          unsigned after = 0;
          {
            const ControlRegister set(mode);
            got = problem->run({.num_threads = threads, .kernel = kernel});
            after = ControlRegister::mode();
          }
          SCOPED_TRACE(testing::Message() << kernel << " mode " << std::hex << mode);
          EXPECT_EQ(after, mode) << "the caller's mode was not restored";
          expect_same(c, got, want);
        }
      }
    }
  }
}

#endif

TEST_P(PermuteWithEpGradDeterminism, RoundingModeOfTheStandardLibrary) {
  const GradCase c = large(GetParam());
  const GradProblem problem(c);
  const Outputs want = problem.expected();
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    const Outputs got = problem.run({});
    const int after = std::fegetround();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(after, mode);
    expect_same(c, got, want);
  }
}

TEST_P(PermuteWithEpGradDeterminism, OnePlanInManyThreads) {
  const GradCase c = large(GetParam());
  const GradProblem problem(c);
  const Outputs want = problem.expected();
  const auto plan = moe::PermuteWithEpGrad::plan(problem.args(), {.num_threads = 2});
  std::vector<Outputs> got(
      4, {std::vector<std::byte>(want.tokens.size()), std::vector<std::byte>(want.probs.size())});
  {
    std::vector<std::jthread> threads;
    for (Outputs& out : got) {
      threads.emplace_back([&] {
        auto pointers = problem.inputs();
        pointers.tokens_grad = out.tokens.data();
        pointers.probs_grad = out.probs.data();
        const moe::BoundCall call = plan.bind(pointers);
        std::vector<std::byte> workspace(call.workspace_bytes());
        for (int64_t run = 0; run < effort(20); ++run) call.run(workspace.data());
      });
    }
  }
  for (const Outputs& out : got) expect_same(c, out, want);
}

INSTANTIATE_TEST_SUITE_P(DTypes, PermuteWithEpGradDeterminism, testing::ValuesIn(kFloatDTypes),
                         dtype_param_name);

// Random cases of every kind at once; the seed of a failing one is printed with it.
TEST(PermuteWithEpGradRandom, MatchesTheOracle) {
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(effort(400)); ++seed) {
    ref::Random random(seed);
    GradCase c{.dtype = kFloatDTypes[random.below(4)],
               .index_dtype = random.below(2) ? DType::kI32 : DType::kI64,
               .num_tokens = random.below(30),
               .top_k = 1 + random.below(random.below(4) ? 9 : 20),
               .hidden_size = 1 + random.below(random.below(4) ? 70 : 1500),
               .values = static_cast<Values>(random.below(3)),
               .seed = seed,
               .num_threads = static_cast<int>(random.below(5))};
    const int64_t slots = c.num_slots();
    if (random.below(3)) {
      const int64_t begin = random.below(slots + 1);
      c.ep_range = moe::EpRange{begin, begin + random.below(slots - begin + 1)};
      c.rows = c.ep_range->end - begin + random.below(5);
    }
    if (random.below(2)) {
      c.probs_dtype = c.dtype == DType::kF64 ? c.dtype : kFloatDTypes[random.below(3)];
      c.probs = {.stride = random.below(4), .offset = random.below(9)};
    }
    if (random.below(3) == 0) c.tokens.inner_stride = random.below(4);
    if (random.below(2)) c.tokens.stride = random.below(2 * c.hidden_size);
    c.tokens.slack_bytes = static_cast<size_t>(random.below(70));
    c.tokens.offset = random.below(9);
    c.out_slack_bytes = static_cast<size_t>(random.below(70));
    if (random.below(3) == 0) {
      c.indices.resize(static_cast<size_t>(slots));
      for (int64_t& index : c.indices) index = random.below(2 * slots + 4) - slots / 2;
    }
    expect_matches_oracle(c);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace test
