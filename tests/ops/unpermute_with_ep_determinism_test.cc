// The same bits for any number of threads, any neighbours, any floating-point mode, any run.
#include <gtest/gtest.h>

#include <thread>

#include "ops/unpermute_case.h"
#include "ref/routing.h"
#include "support/control_register.h"
#include "support/effort.h"

namespace test {
namespace {

using moe::DType;

UnpermuteCase large(DType dtype) {
  const int64_t tokens = effort(400);
  return {.dtype = dtype,
          .probs_dtype = dtype,
          .num_tokens = tokens,
          .top_k = 4,
          .hidden_size = 513,
          .ep_range = moe::EpRange{tokens / 2, tokens * 3},
          .seed = 11};
}

class UnpermuteWithEpDeterminism : public testing::TestWithParam<DType> {};

TEST_P(UnpermuteWithEpDeterminism, ThreadsKernelsAndRuns) {
  const UnpermuteCase c = large(GetParam());
  const UnpermuteData data(c);
  const UnpermuteOutputs want = data.expected();
  for (const int threads : {1, 2, 3, 7}) {
    for (int run = 0; run < 2; ++run) {
      SCOPED_TRACE(testing::Message() << threads << " threads");
      for (const std::string& kernel : moe::UnpermuteWithEp::kernel_names()) {
        const auto out = data.run_forward({.num_threads = threads, .kernel = kernel}, run);
        expect_same_values(kernel.c_str(), c.dtype, out, want.tokens);
      }
      for (const std::string& kernel : moe::UnpermuteWithEpGrad::kernel_names()) {
        SCOPED_TRACE(kernel);
        expect_same(c, data.run_grad({.num_threads = threads, .kernel = kernel}, run), want);
      }
    }
  }
}

TEST_P(UnpermuteWithEpDeterminism, FewTokensManyThreads) {
  for (const int64_t tokens : {1, 2, 5}) {
    for (const int threads : {2, 7, 64}) {
      UnpermuteCase c = large(GetParam());
      c.num_tokens = tokens;
      c.hidden_size = 7169;
      c.ep_range = moe::EpRange{1, tokens * 4};
      c.num_threads = threads;
      expect_matches_oracle(c);
    }
  }
}

#if defined(__x86_64__)

TEST_P(UnpermuteWithEpDeterminism, AnyFloatingPointModeOfTheCaller) {
  for (const Values values : {Values::kAnyBits, Values::kFinite}) {
    UnpermuteCase c = large(GetParam());
    c.values = values;
    c.num_tokens = 64;
    c.ep_range = moe::EpRange{0, 250};
    const UnpermuteData data(c);
    const UnpermuteOutputs want = data.expected();
    const auto in_mode = [&](unsigned mode, auto&& run) {
      const ControlRegister set(mode);
      auto got = run();
      EXPECT_EQ(ControlRegister::mode(), mode) << "the caller's mode was not restored";
      return got;
    };
    for (const unsigned mode : kCallerModes) {
      SCOPED_TRACE(testing::Message() << "mode " << std::hex << mode);
      for (const std::string& kernel : moe::UnpermuteWithEp::kernel_names()) {
        const auto out =
            in_mode(mode, [&] { return data.run_forward({.num_threads = 3, .kernel = kernel}); });
        expect_same_values(kernel.c_str(), c.dtype, out, want.tokens);
      }
      for (const std::string& kernel : moe::UnpermuteWithEpGrad::kernel_names()) {
        SCOPED_TRACE(kernel);
        expect_same(
            c, in_mode(mode, [&] { return data.run_grad({.num_threads = 3, .kernel = kernel}); }),
            want);
      }
    }
  }
}

#endif

TEST_P(UnpermuteWithEpDeterminism, OnePlanInManyThreads) {
  const UnpermuteCase c = large(GetParam());
  const UnpermuteData data(c);
  const UnpermuteOutputs want = data.expected();
  const auto forward = moe::UnpermuteWithEp::plan(data.args(), {.num_threads = 2});
  const auto grad = moe::UnpermuteWithEpGrad::plan(data.grad_args(), {.num_threads = 2});
  const UnpermuteOutputs poisoned{std::vector<std::byte>(want.tokens.size()),
                                  std::vector<std::byte>(want.rows.size()),
                                  std::vector<std::byte>(want.probs.size())};
  std::vector<UnpermuteOutputs> got(4, poisoned);
  {
    std::vector<std::jthread> threads;
    for (UnpermuteOutputs& out : got) {
      threads.emplace_back([&] {
        auto pointers = data.inputs();
        pointers.out = out.tokens.data();
        auto grad_pointers = data.grad_inputs();
        grad_pointers.permuted_tokens_grad = out.rows.data();
        grad_pointers.probs_grad = out.probs.data();
        const moe::BoundCall forward_call = forward.bind(pointers);
        const moe::BoundCall grad_call = grad.bind(grad_pointers);
        std::vector<std::byte> workspace(grad_call.workspace_bytes());
        for (int64_t run = 0; run < effort(20); ++run) {
          forward_call.run();
          grad_call.run(workspace.data());
        }
      });
    }
  }
  for (const UnpermuteOutputs& out : got) {
    expect_same_values("out", c.dtype, out.tokens, want.tokens);
    expect_same(c, out, want);
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, UnpermuteWithEpDeterminism, testing::ValuesIn(kFloatDTypes),
                         dtype_param_name);

int64_t random_inner(ref::Random& random) { return random.below(4) ? 1 : random.below(4); }

// Random cases of every kind at once; the seed of a failing one is printed with it.
TEST(UnpermuteWithEpRandom, MatchesTheOracle) {
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(effort(600)); ++seed) {
    ref::Random random(seed);
    UnpermuteCase c{.dtype = kFloatDTypes[random.below(4)],
                    .index_dtype = random.below(2) ? DType::kI32 : DType::kI64,
                    .num_tokens = random.below(30),
                    .top_k = 1 + random.below(random.below(4) ? 9 : 20),
                    .hidden_size = 1 + random.below(random.below(4) ? 140 : 1500),
                    .zero_probs = random.below(6),
                    .with_probs_grad = random.below(4) > 0,
                    .values = static_cast<Values>(random.below(3)),
                    .seed = seed,
                    .num_threads = static_cast<int>(random.below(5))};
    const int64_t slots = c.num_slots();
    if (random.below(3)) {
      const int64_t begin = random.below(slots + 1);
      c.ep_range = moe::EpRange{begin, begin + random.below(slots - begin + 1)};
      c.rows = c.ep_range->end - begin + random.below(5);
    }
    if (random.below(4)) {
      c.probs_dtype = c.dtype == DType::kF64 ? c.dtype : kFloatDTypes[random.below(3)];
      c.probs = {.stride = random.below(9), .inner_stride = random.below(4), .offset = 2};
    }
    c.permuted = {.inner_stride = random_inner(random), .offset = random.below(9)};
    c.grad = {.inner_stride = random_inner(random), .offset = random.below(9)};
    if (random.below(2)) c.permuted.stride = random.below(2 * c.hidden_size);
    if (random.below(2)) c.grad.stride = random.below(2 * c.hidden_size);
    c.permuted.slack_bytes = static_cast<size_t>(random.below(70));
    c.grad.slack_bytes = static_cast<size_t>(random.below(70));
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
