// What the drop-in C API costs beside the operator's own work: phase 1, and phase 2 above an empty
// enqueue (lock, push, notify) that is measured in the same loop.
#include <benchmark/benchmark.h>

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "measure.h"

namespace moe::bench {
namespace {

constexpr int kNumCalls = 4000;
// One decode step of a small layer: enough to be a real call, little enough to be over soon.
constexpr int64_t kNumTokens = 1, kTopK = 8, kHiddenSize = 64;

void require(int code, const char* call) {
  if (code == 0) return;
  const char* message = aclGetRecentErrMsg();
  throw std::runtime_error(std::string(call) + ": " + std::to_string(code) + " " +
                           (message ? message : ""));
}

class DeviceTensor {
 public:
  DeviceTensor(aclDataType dtype, std::vector<int64_t> shape) {
    int64_t bytes = static_cast<int64_t>(aclDataTypeSize(dtype));
    for (int64_t size : shape) bytes *= size;
    require(aclrtMalloc(&data_, static_cast<size_t>(bytes), ACL_MEM_MALLOC_HUGE_FIRST),
            "aclrtMalloc");
    require(aclrtMemset(data_, static_cast<size_t>(bytes), 0, static_cast<size_t>(bytes)),
            "aclrtMemset");
    tensor_ = aclCreateTensor(shape.data(), shape.size(), dtype, nullptr, 0, ACL_FORMAT_ND,
                              shape.data(), shape.size(), data_);
  }
  ~DeviceTensor() {
    aclDestroyTensor(tensor_);
    aclrtFree(data_);
  }
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;
  const aclTensor* get() const { return tensor_; }

 private:
  void* data_ = nullptr;
  aclTensor* tensor_ = nullptr;
};

// One call of the operator, phase by phase.
class Step {
 public:
  Step() { require(aclrtCreateStream(&stream_), "aclrtCreateStream"); }
  ~Step() {
    aclrtDestroyStream(stream_);
    aclDestroyIntArray(range_);
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  aclOpExecutor* phase_1() {
    aclOpExecutor* executor = nullptr;
    uint64_t workspace_bytes = 0;
    require(aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
                rows_.get(), indices_.get(), probs_.get(), kTopK, range_, false, tokens_grad_.get(),
                probs_grad_.get(), &workspace_bytes, &executor),
            "phase 1");
    if (workspace_bytes > 0) throw std::runtime_error("phase 1: wants workspace");
    return executor;
  }
  void phase_2(aclOpExecutor* executor) {
    require(aclnnMoeTokenPermuteWithEpGrad(nullptr, 0, executor, stream_), "phase 2");
  }
  void synchronize() { require(aclrtSynchronizeStream(stream_), "aclrtSynchronizeStream"); }

 private:
  static constexpr int64_t kNumSlots = kNumTokens * kTopK;
  static constexpr int64_t kWindow[2] = {0, kNumSlots};
  DeviceTensor rows_{ACL_BF16, {kNumSlots, kHiddenSize}};
  DeviceTensor indices_{ACL_INT32, {kNumSlots}};
  DeviceTensor probs_{ACL_FLOAT, {kNumSlots}};
  DeviceTensor tokens_grad_{ACL_BF16, {kNumTokens, kHiddenSize}};
  DeviceTensor probs_grad_{ACL_FLOAT, {kNumTokens, kTopK}};
  aclIntArray* range_ = aclCreateIntArray(kWindow, 2);
  aclrtStream stream_ = nullptr;
};

// The least that a stream can be: a thread, a lock, a queue.
class PlainQueue {
 public:
  ~PlainQueue() {
    enqueue([this] { stop_ = true; });
  }
  void enqueue(std::function<void()> work) {
    {
      std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
    }
    changed_.notify_one();
  }
  void synchronize() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return work_.empty(); });
  }

 private:
  void serve() {
    while (!stop_) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !work_.empty(); });
      const std::function<void()> work = work_.front();
      lock.unlock();
      work();
      lock.lock();
      work_.pop_front();
      if (work_.empty()) idle_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_, idle_;
  std::deque<std::function<void()>> work_;
  bool stop_ = false;  // touched by the thread alone
  std::jthread thread_{[this] { serve(); }};
};

template <class Fn>
double seconds_of(Fn&& fn) {
  const double start = seconds_now();
  fn();
  return seconds_now() - start;
}

void report(benchmark::State& state, double seconds) {
  state.SetIterationTime(seconds);
  state.counters["us"] = seconds * 1e6;
}

void phase_1(benchmark::State& state) {
  Step step;
  for (auto _ : state) {
    std::vector<double> calls;
    calls.reserve(kNumCalls);
    for (int i = 0; i < kNumCalls; ++i) {
      aclOpExecutor* executor = nullptr;
      calls.push_back(seconds_of([&] { executor = step.phase_1(); }));
      require(aclDestroyAclOpExecutor(executor), "aclDestroyAclOpExecutor");
    }
    report(state, median(calls));
  }
}

void phase_1_and_destroy(benchmark::State& state) {
  Step step;
  for (auto _ : state) {
    std::vector<double> calls;
    calls.reserve(kNumCalls);
    for (int i = 0; i < kNumCalls; ++i) {
      calls.push_back(seconds_of([&] { aclDestroyAclOpExecutor(step.phase_1()); }));
    }
    report(state, median(calls));
  }
}

// Each call finds its queue idle: in both, the notification wakes a sleeping thread.
void phase_2_above_empty_enqueue(benchmark::State& state) {
  Step step;
  PlainQueue queue;
  for (auto _ : state) {
    std::vector<double> calls, empties;
    for (int i = 0; i < kNumCalls; ++i) {
      aclOpExecutor* executor = step.phase_1();
      calls.push_back(seconds_of([&] { step.phase_2(executor); }));
      step.synchronize();
      empties.push_back(seconds_of([&] { queue.enqueue([] {}); }));
      queue.synchronize();
    }
    const double empty = median(empties), call = median(calls);
    report(state, std::max(call - empty, 0.0));
    state.counters["phase_2_us"] = call * 1e6;
    state.counters["empty_enqueue_us"] = empty * 1e6;
  }
}

using Body = void (*)(benchmark::State&);

void register_phase(const char* name, Body body) {
  benchmark::RegisterBenchmark(name,
                               [body](benchmark::State& state) {
                                 try {
                                   body(state);
                                 } catch (const std::exception& e) {
                                   state.SkipWithError(e.what());
                                 }
                               })
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMicrosecond);
}

int run_main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  require(aclInit(nullptr), "aclInit");
  require(aclrtSetDevice(0), "aclrtSetDevice");
  register_phase("phase_1", phase_1);
  register_phase("phase_1_and_destroy", phase_1_and_destroy);
  register_phase("phase_2_above_empty_enqueue", phase_2_above_empty_enqueue);
  benchmark::RunSpecifiedBenchmarks();
  require(aclrtResetDevice(0), "aclrtResetDevice");
  require(aclFinalize(), "aclFinalize");
  return 0;
}

}  // namespace
}  // namespace moe::bench

int main(int argc, char** argv) {
  try {
    return moe::bench::run_main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
