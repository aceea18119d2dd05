// Executors: consumed, repeatable, given other addresses; and what phase 2 checks.
#include <atomic>
#include <cstdlib>
#include <thread>

#include "acl/grad_call.h"
#include "acl/held_stream.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"

namespace moe::acl_test {
namespace {

class Executors : public Device {
 protected:
  aclOpExecutor* made(GradCall& call) {
    const PhaseOne first = call.phase_one();
    EXPECT_EQ(first.status, ACLNN_SUCCESS) << first.message;
    EXPECT_EQ(first.workspace_size, 0u);
    return first.executor;
  }
  aclOpExecutor* made_repeatable(GradCall& call) {
    aclOpExecutor* executor = made(call);
    EXPECT_EQ(aclSetAclOpExecutorRepeatable(executor), ACLNN_SUCCESS);
    return executor;
  }
  int launch(aclOpExecutor* executor) {
    return aclnnMoeTokenPermuteWithEpGrad(nullptr, 0, executor, stream_);
  }
  void expect_launches(aclOpExecutor* executor) {
    ASSERT_EQ(launch(executor), ACLNN_SUCCESS) << recent_message();
    ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  }
  void expect_fails(aclOpExecutor* executor, int status, const std::vector<std::string>& words) {
    recent_message();
    EXPECT_EQ(launch(executor), status);
    const std::string message = recent_message();
    for (const std::string& word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << "\"" << message << "\" lacks " << word;
    }
  }
};

aclOpExecutor* not_an_executor() { return reinterpret_cast<aclOpExecutor*>(uintptr_t{0x1234}); }

TEST_F(Executors, PhaseTwoWantsALiveOne) {
  expect_fails(nullptr, ACLNN_ERR_PARAM_NULLPTR, {"executor", "null"});
  expect_fails(not_an_executor(), ACLNN_ERR_INNER_NULLPTR, {"executor"});
  GradCall call;
  expect_fails(reinterpret_cast<aclOpExecutor*>(call.tensor(kProbs).get()), ACLNN_ERR_INNER_NULLPTR,
               {"executor"});
  aclOpExecutor* destroyed = made(call);
  ASSERT_EQ(aclDestroyAclOpExecutor(destroyed), ACLNN_SUCCESS);
  expect_fails(destroyed, ACLNN_ERR_INNER_NULLPTR, {"executor", "destroyed"});
}

TEST_F(Executors, PhaseTwoConsumes) {
  GradCall call;
  aclOpExecutor* executor = made(call);
  expect_launches(executor);
  EXPECT_EQ(call.floats(kTokenOut, 6), kExampleTokens);
  expect_fails(executor, ACLNN_ERR_INNER_NULLPTR, {"executor", "consumed"});
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_ERR_INNER_NULLPTR);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(executor), ACLNN_ERR_INNER_NULLPTR);
  EXPECT_EQ(aclSetTensorAddr(executor, 0, call.tensor(kPermuted).get(), nullptr),
            ACLNN_ERR_INNER_NULLPTR);
}

TEST_F(Executors, AFailedPhaseTwoDoesNotConsume) {
  GradCall call;
  aclOpExecutor* executor = made(call);
  aclrtStream destroyed = nullptr;
  ASSERT_EQ(aclrtCreateStream(&destroyed), ACL_SUCCESS);
  ASSERT_EQ(aclrtDestroyStream(destroyed), ACL_SUCCESS);
  for (aclrtStream bad :
       {destroyed, reinterpret_cast<aclrtStream>(&call), reinterpret_cast<aclrtStream>(executor)}) {
    recent_message();
    EXPECT_EQ(aclnnMoeTokenPermuteWithEpGrad(nullptr, 0, executor, bad), ACLNN_ERR_PARAM_INVALID);
    EXPECT_NE(recent_message().find("stream"), std::string::npos);
  }
  expect_launches(executor);
}

TEST_F(Executors, NullStreamIsTheDefaultStream) {
  GradCall call;
  ASSERT_EQ(aclnnMoeTokenPermuteWithEpGrad(nullptr, 0, made(call), nullptr), ACLNN_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  EXPECT_EQ(call.floats(kTokenOut, 6), kExampleTokens);
}

TEST_F(Executors, WithoutContextNothingRuns) {
  GradCall call;
  aclOpExecutor* executor = made(call);
  int status = 0;
  std::thread([&] {
    status = aclnnMoeTokenPermuteWithEpGrad(nullptr, 0, executor, nullptr);
  }).join();
  EXPECT_EQ(status, ACLNN_ERR_RUNTIME_ERROR);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_SUCCESS);
}

TEST_F(Executors, OfAnotherOperator) {
  GradCall call;
  aclOpExecutor* executor = made(call);
  recent_message();
  EXPECT_EQ(aclnnMoeTokenPermuteGrad(nullptr, 0, executor, stream_), ACLNN_ERR_PARAM_INVALID);
  const std::string message = recent_message();
  EXPECT_NE(message.find("aclnnMoeTokenPermuteWithEpGrad"), std::string::npos) << message;
  expect_launches(executor);
}

TEST_F(Executors, Destroy) {
  EXPECT_EQ(aclDestroyAclOpExecutor(nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyAclOpExecutor(not_an_executor()), ACLNN_ERR_INNER_NULLPTR);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(nullptr), ACLNN_ERR_INNER_NULLPTR);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(not_an_executor()), ACLNN_ERR_INNER_NULLPTR);
  GradCall call;
  aclOpExecutor* executor = made_repeatable(call);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_ERR_INNER_NULLPTR);
}

TEST_F(Executors, RepeatableRunsUntilDestroyed) {
  GradCall call;
  aclOpExecutor* executor = made_repeatable(call);
  for (int i = 1; i <= 5; ++i) {
    const auto value = static_cast<float>(i);
    call.block(kPermuted).upload(std::vector<float>(8, value));
    expect_launches(executor);
    EXPECT_EQ(call.floats(kTokenOut, 6),
              (std::vector<float>{value, value, 2 * value, 2 * value, value, value}));
  }
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_SUCCESS);
  expect_fails(executor, ACLNN_ERR_INNER_NULLPTR, {"executor"});
}

// Work that is queued keeps the addresses of its launch.
TEST_F(Executors, OtherAddresses) {
  GradCall first, second;
  second.block(kPermuted).upload(std::vector<float>(8, 10.0f));
  second.block(kProbs).upload(std::vector<float>(4, 7.0f));
  aclOpExecutor* executor = made_repeatable(first);
  const auto move_to = [&](GradCall& call, bool by_kind) {
    for (size_t i = 0; i < kNumTensors; ++i) {
      const auto which = static_cast<Which>(i);
      aclTensor* tensor = first.tensor(which).get();
      void* address = call.block(which).data();
      const int status = !by_kind ? aclSetTensorAddr(executor, i, tensor, address)
                         : i < 3  ? aclSetInputTensorAddr(executor, i, tensor, address)
                                  : aclSetOutputTensorAddr(executor, i - 3, tensor, address);
      EXPECT_EQ(status, ACLNN_SUCCESS) << recent_message();
    }
  };
  ASSERT_EQ(launch(executor), ACLNN_SUCCESS);
  move_to(second, true);
  expect_launches(executor);
  EXPECT_EQ(first.floats(kTokenOut, 6), kExampleTokens);
  EXPECT_EQ(first.floats(kProbsOut, 6), kExampleProbs);
  EXPECT_EQ(second.floats(kTokenOut, 6), (std::vector<float>{10, 10, 20, 20, 10, 10}));
  EXPECT_EQ(second.floats(kProbsOut, 6), (std::vector<float>{7, 0, 7, 7, 0, 7}));
  first.block(kTokenOut).fill(0);
  move_to(first, false);
  expect_launches(executor);
  EXPECT_EQ(first.floats(kTokenOut, 6), kExampleTokens);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_SUCCESS);
}

TEST_F(Executors, NewAddressesAreCheckedByPhaseTwoOnly) {
  GradCall call;
  Block small(23);
  std::vector<float> host(64);
  aclOpExecutor* executor = made_repeatable(call);
  aclTensor* out = call.tensor(kTokenOut).get();
  const auto move_out = [&](void* address) {
    EXPECT_EQ(aclSetOutputTensorAddr(executor, 0, out, address), ACLNN_SUCCESS);
  };
  move_out(nullptr);
  expect_fails(executor, ACLNN_ERR_PARAM_NULLPTR, {"tokenGradOut", "null"});
  move_out(call.block(kProbsOut).data());
  expect_fails(executor, ACLNN_ERR_PARAM_INVALID, {"tokenGradOut", "probsGradOut", "overlap"});
  move_out(call.block(kIndices).data());
  expect_fails(executor, ACLNN_ERR_PARAM_INVALID, {"tokenGradOut", "sortedIndices", "overlap"});
  move_out(small.data());
  expect_fails(executor, ACLNN_ERR_PARAM_INVALID, {"tokenGradOut", "24", "23"});
  move_out(host.data());
  expect_fails(executor, ACLNN_ERR_PARAM_INVALID, {"tokenGradOut", "aclrtMalloc"});
  EXPECT_TRUE(call.untouched_from(kTokenOut));
  move_out(call.block(kTokenOut).data());
  expect_launches(executor);
  EXPECT_EQ(call.floats(kTokenOut, 6), kExampleTokens);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_SUCCESS);
}

TEST_F(Executors, SetAddressRejects) {
  GradCase no_range;
  no_range.range = std::nullopt;
  GradCall call, without_probs(no_range);
  aclTensor* tensor = call.tensor(kPermuted).get();
  void* address = call.block(kPermuted).data();
  aclOpExecutor* executor = made(call);
  aclOpExecutor* ignores_probs = made(without_probs);
  aclTensor* destroyed = TensorSpec{.shape = {2}}.create(nullptr);
  ASSERT_EQ(aclDestroyTensor(destroyed), ACLNN_SUCCESS);

  using Set = aclnnStatus (*)(aclOpExecutor*, size_t, aclTensor*, void*);
  struct {
    Set set;
    size_t count, ignored;
  } const functions[] = {
      {aclSetInputTensorAddr, 3, 2}, {aclSetOutputTensorAddr, 2, 1}, {aclSetTensorAddr, 5, 4}};
  for (const auto& [set, count, ignored] : functions) {
    EXPECT_EQ(set(nullptr, 0, tensor, address), ACLNN_ERR_INNER_NULLPTR);
    EXPECT_EQ(set(executor, 0, nullptr, address), ACLNN_ERR_INNER_NULLPTR);
    EXPECT_EQ(set(not_an_executor(), 0, tensor, address), ACLNN_ERR_INNER_NULLPTR);
    EXPECT_EQ(set(executor, 0, destroyed, address), ACLNN_ERR_PARAM_INVALID);
    EXPECT_EQ(set(executor, count - 1, tensor, address), ACLNN_SUCCESS);
    EXPECT_EQ(set(executor, count, tensor, address), ACLNN_ERR_PARAM_INVALID);
    EXPECT_EQ(set(executor, SIZE_MAX, tensor, address), ACLNN_ERR_PARAM_INVALID);
    EXPECT_EQ(set(executor, SIZE_MAX - 2, tensor, address), ACLNN_ERR_PARAM_INVALID);
    recent_message();
    EXPECT_EQ(set(ignores_probs, ignored, tensor, address), ACLNN_ERR_PARAM_INVALID);
    EXPECT_NE(recent_message().find("phase 1"), std::string::npos);
  }
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyAclOpExecutor(ignores_probs), ACLNN_SUCCESS);
}

// Phase 1 takes tensors without data; phase 2 then needs each of them.
TEST_F(Executors, DataThatComesLater) {
  for (size_t missing = 0; missing < kNumTensors; ++missing) {
    const auto which = static_cast<Which>(missing);
    SCOPED_TRACE(missing);
    GradCase args;
    args.place = [=](auto& addresses) { addresses[missing] = nullptr; };
    GradCall call(args);
    aclOpExecutor* executor = made(call);
    expect_fails(executor, ACLNN_ERR_PARAM_NULLPTR, {"null"});
    EXPECT_EQ(
        aclSetTensorAddr(executor, missing, call.tensor(which).get(), call.block(which).data()),
        ACLNN_SUCCESS);
    expect_launches(executor);
    EXPECT_EQ(call.floats(kTokenOut, 6), kExampleTokens);
    EXPECT_EQ(call.floats(kProbsOut, 6), kExampleProbs);
  }
}

// The tensors that do have data are still checked.
TEST_F(Executors, DataThatComesLaterHidesNoOtherFault) {
  GradCase args;
  args.place = [](auto& addresses) { addresses[kPermuted] = nullptr; };
  args.block_bytes[kProbsOut] = 20;
  expect_rejected(GradCall(args).phase_one(), ACLNN_ERR_PARAM_INVALID,
                  {"probsGradOut", "24", "20"});
}

TEST_F(Executors, RawAddressIsSeenByLaterPhasesOneOnly) {
  GradCall call;
  Block other(512);
  aclOpExecutor* before = made(call);
  ASSERT_EQ(aclSetRawTensorAddr(call.tensor(kTokenOut).get(), other.data()), ACLNN_SUCCESS);
  expect_launches(before);
  EXPECT_EQ(call.floats(kTokenOut, 6), kExampleTokens);
  other.fill(0);
  expect_launches(made(call));
  auto values = other.download<float>();
  values.resize(6);
  EXPECT_EQ(values, kExampleTokens);
}

TEST_F(Executors, BlocksFreedBetweenThePhases) {
  for (int which = 0; which < kNumTensors; ++which) {
    SCOPED_TRACE(which);
    Block block(512);
    GradCase args;
    args.place = [&](auto& addresses) { addresses[which] = block.data(); };
    GradCall call(args);
    aclOpExecutor* executor = made(call);
    block.free();
    expect_fails(executor, ACLNN_ERR_PARAM_INVALID, {"aclrtMalloc"});
    EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_SUCCESS);
  }
}

// The queued work of an earlier launch keeps the memory, but not for a later launch.
TEST_F(Executors, BlocksFreedBetweenLaunches) {
  if (std::getenv("MOE_ACL_LAUNCH_BLOCKING") != nullptr) GTEST_SKIP() << "nothing is ever queued";
  GradCall call;
  aclOpExecutor* executor = made_repeatable(call);
  {
    HeldStream held(stream_);
    ASSERT_EQ(launch(executor), ACLNN_SUCCESS) << recent_message();
    call.block(kTokenOut).free();
    expect_fails(executor, ACLNN_ERR_PARAM_INVALID, {"aclrtMalloc", "tokenGradOut"});
  }
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  expect_fails(executor, ACLNN_ERR_PARAM_INVALID, {"aclrtMalloc", "tokenGradOut"});
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_SUCCESS);
}

// The allocator hands the same address out again: to the executor it is the block it names now.
TEST_F(Executors, BlocksTakenAnewBetweenThePhases) {
  for (const size_t bytes : {size_t{512}, size_t{16}}) {
    SCOPED_TRACE(bytes);
    GradCall call;
    void* const address = call.block(kTokenOut).data();
    aclOpExecutor* executor = made(call);
    call.block(kTokenOut).free();
    std::vector<Block> others;
    // Bytes from the address to the end of the latest block, if that holds it: it need not begin
    // there.
    const auto room = [&] {
      const auto past = static_cast<size_t>(static_cast<char*>(address) -
                                            static_cast<char*>(others.back().data()));
      return past < bytes ? bytes - past : 0;
    };
    do {
      others.emplace_back(bytes);
    } while (others.size() < 64 && room() == 0);
    std::vector<float> values(6);
    const size_t needed = values.size() * sizeof(float);
    if (room() >= needed) {
      expect_launches(executor);
      ASSERT_EQ(aclrtMemcpy(values.data(), needed, address, needed, ACL_MEMCPY_DEVICE_TO_HOST),
                ACL_SUCCESS);
      EXPECT_EQ(values, kExampleTokens);
    } else {
      const bool begins_there = others.back().data() == address;
      expect_fails(executor, ACLNN_ERR_PARAM_INVALID,
                   {"aclrtMalloc", begins_there ? "16 bytes" : "block"});
      EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_SUCCESS);
    }
  }
}

// Tensors, range and memory go as soon as phase 2 has returned, while the work still waits.
TEST_F(Executors, QueuedWorkKeepsWhatItNeeds) {
  if (std::getenv("MOE_ACL_LAUNCH_BLOCKING") != nullptr) GTEST_SKIP() << "nothing is ever queued";
  Block tokens(24), probs(24);
  {
    HeldStream held(stream_);
    {
      GradCase args;
      args.place = [&](auto& addresses) {
        addresses[kTokenOut] = tokens.data();
        addresses[kProbsOut] = probs.data();
      };
      GradCall call(args);
      ASSERT_EQ(launch(made(call)), ACLNN_SUCCESS) << recent_message();
    }
    // What the freed inputs held must not be in anyone else's hands yet.
    std::vector<Block> others;
    for (int i = 0; i < 8; ++i) {
      others.emplace_back(512);
      others.back().fill(0xff);
    }
  }
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(tokens.download<float>(), kExampleTokens);
  EXPECT_EQ(probs.download<float>(), kExampleProbs);
}

TEST_F(Executors, OutputsMayBeFreedWhileTheWorkWaits) {
  if (std::getenv("MOE_ACL_LAUNCH_BLOCKING") != nullptr) GTEST_SKIP() << "nothing is ever queued";
  {
    HeldStream held(stream_);
    GradCall call;
    ASSERT_EQ(launch(made(call)), ACLNN_SUCCESS) << recent_message();
  }
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
}

TEST_F(Executors, WithoutSynchronisationTheOutputIsStale) {
  if (std::getenv("MOE_ACL_LAUNCH_BLOCKING") != nullptr) GTEST_SKIP() << "never stale then";
  GradCall call;
  HeldStream held(stream_);
  ASSERT_EQ(launch(made(call)), ACLNN_SUCCESS);
  EXPECT_TRUE(call.untouched_from(kTokenOut));
  EXPECT_TRUE(call.untouched_from(kProbsOut));
  held.release();
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(call.floats(kTokenOut, 6), kExampleTokens);
}

// Of two threads that launch one executor at the same moment, one consumes it.
TEST_F(Executors, ConsumedOnceByManyThreads) {
  constexpr int kNumThreads = 2, kNumExecutors = 500;
  GradCall call;
  std::vector<aclOpExecutor*> executors;
  for (int i = 0; i < kNumExecutors; ++i) executors.push_back(made(call));
  std::atomic<int> arrived{0}, launched{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < kNumThreads; ++number) {
    threads.emplace_back([&] {
      EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      for (int i = 0; i < kNumExecutors; ++i) {
        ++arrived;
        while (arrived < kNumThreads * (i + 1)) std::this_thread::yield();
        const int status = launch(executors[i]);
        EXPECT_TRUE(status == ACLNN_SUCCESS || status == ACLNN_ERR_INNER_NULLPTR) << status;
        launched += status == ACLNN_SUCCESS;
      }
      aclrtResetDevice(0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(launched, kNumExecutors);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(call.floats(kTokenOut, 6), kExampleTokens);
}

// Several threads, each with a stream and tensors of its own.
TEST_F(Executors, StreamsInParallel) {
  std::vector<std::thread> threads;
  for (int number = 0; number < 3; ++number) {
    threads.emplace_back([number] {
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      aclrtStream stream = nullptr;
      ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
      for (int i = 0; i < 30; ++i) {
        const auto value = static_cast<float>(100 * number + i);
        GradCall call;
        call.block(kPermuted).upload(std::vector<float>(8, value));
        ASSERT_EQ(call.run(stream), 0) << recent_message();
        EXPECT_EQ(call.floats(kTokenOut, 6),
                  (std::vector<float>{value, value, 2 * value, 2 * value, value, value}));
      }
      EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
      aclrtResetDevice(0);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// One repeatable executor on two streams at once, its addresses changed meanwhile.
TEST_F(Executors, RepeatableSharedByThreads) {
  GradCall call, other;
  aclOpExecutor* executor = made_repeatable(call);
  std::vector<std::thread> threads;
  for (int number = 0; number < 2; ++number) {
    threads.emplace_back([&, number] {
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      for (int i = 0; i < 50; ++i) {
        // Both threads write the same results to the same places: one stream orders them.
        EXPECT_EQ(launch(executor), ACLNN_SUCCESS);
        GradCall& next = (i + number) % 2 == 0 ? call : other;
        EXPECT_EQ(aclSetOutputTensorAddr(executor, 0, call.tensor(kTokenOut).get(),
                                         next.block(kTokenOut).data()),
                  ACLNN_SUCCESS);
      }
      aclrtResetDevice(0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(call.floats(kTokenOut, 6), kExampleTokens);
  EXPECT_EQ(other.floats(kTokenOut, 6), kExampleTokens);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), ACLNN_SUCCESS);
}

}  // namespace
}  // namespace moe::acl_test
