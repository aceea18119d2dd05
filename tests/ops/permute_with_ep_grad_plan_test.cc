// Plans, bound calls, streams, kernels by name, and the environment.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <sstream>

#include "ops/grad_case.h"

namespace test {
namespace {

using moe::DType;
using moe::PermuteWithEpGrad;

// Runs its work when told to.
class HeldStream : public moe::Stream {
 public:
  void enqueue(std::function<void()> work) override { queue_.push_back(std::move(work)); }
  size_t size() const { return queue_.size(); }
  void drain() {
    std::vector<std::function<void()>> work = std::move(queue_);
    queue_.clear();
    for (const auto& item : work) item();
  }

 private:
  std::vector<std::function<void()>> queue_;
};

class PermuteWithEpGradPlan : public testing::Test {
 protected:
  const GradCase case_{.probs_dtype = DType::kF16, .ep_range = moe::EpRange{3, 12}};
  const GradProblem problem_{case_};
  const Outputs want_ = problem_.expected();
  Outputs got_{std::vector<std::byte>(want_.tokens.size(), std::byte{0x5a}),
               std::vector<std::byte>(want_.probs.size(), std::byte{0x5a})};

  PermuteWithEpGrad::Pointers pointers() {
    PermuteWithEpGrad::Pointers all = problem_.inputs();
    all.tokens_grad = got_.tokens.data();
    all.probs_grad = got_.probs.data();
    return all;
  }
};

TEST_F(PermuteWithEpGradPlan, StreamRunsLaterAndOnce) {
  HeldStream stream;
  const Outputs before = got_;
  PermuteWithEpGrad::plan(problem_.args()).bind(pointers()).run(nullptr, stream);
  ASSERT_EQ(stream.size(), 1u);
  EXPECT_EQ(got_.tokens, before.tokens);
  EXPECT_EQ(got_.probs, before.probs);
  stream.drain();
  expect_same(case_, got_, want_);
}

TEST_F(PermuteWithEpGradPlan, WhatRunThrowsTheStreamsWorkThrows) {
  auto args = problem_.args();
  args.check_indices = true;
  const std::vector<int32_t> zeros(static_cast<size_t>(case_.num_slots()));
  auto all = pointers();
  all.sorted_indices = zeros.data();
  const moe::BoundCall call = PermuteWithEpGrad::plan(args).bind(all);
  HeldStream stream;
  EXPECT_THROW(call.run(nullptr, stream), moe::NullArgument);
  EXPECT_EQ(stream.size(), 0u);
  std::vector<std::byte> workspace(call.workspace_bytes());
  call.run(workspace.data(), stream);
  EXPECT_THROW(stream.drain(), moe::IndexError);
}

TEST_F(PermuteWithEpGradPlan, BoundCallOutlivesPlanAndCopies) {
  moe::BoundCall call;
  {
    const PermuteWithEpGrad plan = PermuteWithEpGrad::plan(problem_.args());
    const moe::BoundCall first = plan.bind(pointers());
    call = first;
  }
  call.run();
  expect_same(case_, got_, want_);
}

TEST_F(PermuteWithEpGradPlan, QueuedCallOutlivesEverything) {
  HeldStream stream;
  PermuteWithEpGrad::plan(problem_.args()).bind(pointers()).run(nullptr, stream);
  stream.drain();
  expect_same(case_, got_, want_);
}

TEST_F(PermuteWithEpGradPlan, OnePlanForManyAddresses) {
  const PermuteWithEpGrad plan = PermuteWithEpGrad::plan(problem_.args());
  for (int i = 0; i < 3; ++i) {
    GradCase other = case_;
    other.seed = static_cast<uint64_t>(100 + i);
    const GradProblem problem(other);
    auto all = problem.inputs();
    all.tokens_grad = got_.tokens.data();
    all.probs_grad = got_.probs.data();
    plan.bind(all).run();
    expect_same(other, got_, problem.expected());
  }
}

TEST(BoundCall, WithoutACallDoesNothing) {
  const moe::BoundCall call;
  HeldStream stream;
  EXPECT_EQ(call.workspace_bytes(), 0u);
  call.run();
  call.run(nullptr, stream);
  stream.drain();
}

TEST_F(PermuteWithEpGradPlan, ForcedKernelIsTheOneThatRuns) {
  const std::vector<std::string> names = PermuteWithEpGrad::kernel_names();
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.back(), "portable");
  for (const std::string& name : names) {
    const PermuteWithEpGrad plan = PermuteWithEpGrad::plan(problem_.args(), {.kernel = name});
    EXPECT_EQ(plan.kernel_name(), name);
    EXPECT_NE(plan.explain().find(name + ":"), std::string::npos) << plan.explain();
  }
}

TEST_F(PermuteWithEpGradPlan, UnknownKernelIsAnError) {
  for (const std::string name : {"nonsense", "Portable", " portable"}) {
    try {
      PermuteWithEpGrad::plan(problem_.args(), {.kernel = name});
      ADD_FAILURE() << name << " was accepted";
    } catch (const moe::InvalidArgument& error) {
      EXPECT_EQ(error.argument(), "kernel");
      const std::string start = "kernel: \"" + name + "\", but this machine has ";
      EXPECT_EQ(std::string(error.what()).substr(0, start.size()), start);
      EXPECT_NE(std::string(error.what()).find("portable"), std::string::npos);
    }
  }
}

TEST_F(PermuteWithEpGradPlan, NegativeThreadsAreAnError) {
  try {
    PermuteWithEpGrad::plan(problem_.args(), {.num_threads = -1});
    ADD_FAILURE() << "was accepted";
  } catch (const moe::InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "num_threads: -1, but needs 0 or more");
  }
}

TEST(NumThreads, LimitIsSetAndTakenBack) {
  const int before = moe::num_threads();
  EXPECT_GE(before, 1);
  moe::set_num_threads(3);
  EXPECT_EQ(moe::num_threads(), 3);
  for (const int restore : {0, -5}) {
    moe::set_num_threads(7);
    moe::set_num_threads(restore);
    EXPECT_EQ(moe::num_threads(), before);
  }
}

// Each in a process of its own, started afresh: the library reads its environment once.
class EnvironmentDeathTest : public PermuteWithEpGradPlan {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }

  static void expect_in_child(const char* variable, const char* value,
                              const std::function<bool()>& check) {
    SCOPED_TRACE(testing::Message() << variable << "=" << value);
    EXPECT_EXIT(
        {
          setenv(variable, value, 1);
          std::exit(check() ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
  }
};

TEST_F(EnvironmentDeathTest, KernelIsForcedByTheEnvironment) {
  const auto name = [&] { return PermuteWithEpGrad::plan(problem_.args()).kernel_name(); };
  expect_in_child("MOE_KERNEL", "portable", [&] { return name() == "portable"; });
  expect_in_child("MOE_KERNEL", "nonsense", [&] {
    try {
      name();
      return false;
    } catch (const moe::InvalidArgument& error) {
      return error.argument() == "kernel";
    }
  });
  expect_in_child("MOE_KERNEL", "", [&] { return !name().empty(); });
}

TEST_F(EnvironmentDeathTest, EngineGoesBeforeTheEnvironment) {
  expect_in_child("MOE_KERNEL", "nonsense", [&] {
    return PermuteWithEpGrad::plan(problem_.args(), {.kernel = "portable"}).kernel_name() ==
           "portable";
  });
}

TEST_F(EnvironmentDeathTest, NumThreads) {
  expect_in_child("MOE_NUM_THREADS", "5", [] { return moe::num_threads() == 5; });
  expect_in_child("MOE_NUM_THREADS", "5", [] {
    moe::set_num_threads(2);
    const bool set = moe::num_threads() == 2;
    moe::set_num_threads(0);
    return set && moe::num_threads() == 5;
  });
  unsetenv("MOE_NUM_THREADS");
  const int all = moe::num_threads();
  for (const char* value : {"", "0", "-3", "x", "3x", " 3", "99999999999999999999"}) {
    expect_in_child("MOE_NUM_THREADS", value, [&] { return moe::num_threads() == all; });
  }
}

}  // namespace
}  // namespace test
