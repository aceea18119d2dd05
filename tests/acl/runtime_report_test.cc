// Callbacks and the threads that run them.
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime_support.h"

namespace {

using namespace moe::acl_test;  // NOLINT: the test's own vocabulary

class ReportTest : public StreamTest {
 protected:
  void SetUp() override {
    StreamTest::SetUp();
    ASSERT_EQ(aclrtSubscribeReport(this_thread(), stream_), ACL_SUCCESS);
  }
  void TearDown() override {
    if (stream_ != nullptr) aclrtUnSubscribeReport(this_thread(), stream_);
    StreamTest::TearDown();
  }
  aclError launch(aclrtCallback function, void* data, aclrtCallbackBlockType type) {
    return aclrtLaunchCallback(function, data, type, stream_);
  }
};

void count(void* counter) { ++*static_cast<int*>(counter); }

TEST_F(ReportTest, RunInTheSubscribedThreadInOrder) {
  struct Seen {
    std::vector<int>* order;
    int number;
    std::thread::id thread;
  };
  std::vector<int> order;
  std::vector<Seen> seen(20);
  for (int i = 0; i < 20; ++i) {
    seen[i] = {&order, i, {}};
    const auto type = i % 3 == 0 ? ACL_CALLBACK_BLOCK : ACL_CALLBACK_NO_BLOCK;
    EXPECT_EQ(launch(
                  [](void* data) {
                    auto* entry = static_cast<Seen*>(data);
                    entry->order->push_back(entry->number);
                    entry->thread = std::this_thread::get_id();
                  },
                  &seen[i], type),
              ACL_SUCCESS);
  }
  for (int i = 0; i < 20; ++i) ASSERT_EQ(aclrtProcessReport(-1), ACL_SUCCESS);
  EXPECT_EQ(aclrtProcessReport(0), ACL_ERROR_RT_REPORT_TIMEOUT);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(order[i], i);
    EXPECT_EQ(seen[i].thread, std::this_thread::get_id());
  }
}

TEST_F(ReportTest, WithoutBlockingTheStreamGoesOn) {
  int calls = 0;
  EXPECT_EQ(launch(count, &calls, ACL_CALLBACK_NO_BLOCK), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(aclrtProcessReport(0), ACL_SUCCESS);
  EXPECT_EQ(calls, 1);
}

TEST_F(ReportTest, BlockingHoldsTheStreamUntilTheCallbackHasRun) {
  int calls = 0;
  EXPECT_EQ(launch(count, &calls, ACL_CALLBACK_BLOCK), ACL_SUCCESS);
  void* const block = malloc_device(1);
  ASSERT_EQ(aclrtMemset(block, 1, 0, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemsetAsync(block, 1, 1, 1, stream_), ACL_SUCCESS);
  // This thread alone can let the stream go on, so waiting here is an error and no deadlock.
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_NE(take_message().find("callback"), std::string::npos);
  EXPECT_EQ(aclrtDestroyStream(stream_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_PARAM_INVALID);
  char value = 9;
  EXPECT_EQ(aclrtMemcpy(&value, 1, block, 1, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(aclrtProcessReport(-1), ACL_SUCCESS);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(&value, 1, block, 1, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
}

TEST_F(ReportTest, ACallbackCannotWaitForItsOwnStream) {
  struct Codes {
    aclrtStream stream;
    aclError synchronize, with_timeout, destroy, copy;
  } codes{stream_, 0, 0, 0, 1};
  const auto use_own_stream = [](void* data) {
    auto* c = static_cast<Codes*>(data);
    char a = 1;
    char b = 2;
    c->synchronize = aclrtSynchronizeStream(c->stream);
    c->with_timeout = aclrtSynchronizeStreamWithTimeout(c->stream, 100000);
    c->destroy = aclrtDestroyStream(c->stream);
    c->copy = aclrtMemcpy(&a, 1, &b, 1, ACL_MEMCPY_HOST_TO_HOST);
  };
  EXPECT_EQ(launch(use_own_stream, &codes, ACL_CALLBACK_BLOCK), ACL_SUCCESS);
  EXPECT_EQ(aclrtProcessReport(-1), ACL_SUCCESS);
  EXPECT_EQ(codes.synchronize, ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(codes.with_timeout, ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(codes.destroy, ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(codes.copy, ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  // One that does not block its stream can.
  EXPECT_EQ(launch(use_own_stream, &codes, ACL_CALLBACK_NO_BLOCK), ACL_SUCCESS);
  EXPECT_EQ(aclrtProcessReport(-1), ACL_SUCCESS);
  EXPECT_EQ(codes.synchronize, ACL_SUCCESS);
  EXPECT_EQ(codes.destroy, ACL_SUCCESS);
  stream_ = nullptr;
}

TEST_F(ReportTest, AnExceptionOfACallbackIsReported) {
  EXPECT_EQ(launch([](void*) { throw std::runtime_error("thrown by the program"); }, nullptr,
                   ACL_CALLBACK_BLOCK),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtProcessReport(-1), ACL_ERROR_INTERNAL_ERROR);
  EXPECT_EQ(take_message(), "thrown by the program");
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
}

TEST_F(ReportTest, WaitingEndsWithTheTime) {
  EXPECT_EQ(aclrtProcessReport(0), ACL_ERROR_RT_REPORT_TIMEOUT);
  EXPECT_EQ(aclrtProcessReport(30), ACL_ERROR_RT_REPORT_TIMEOUT);
  EXPECT_EQ(take_message(), "timeout: no callback in 30 ms");
  EXPECT_EQ(aclrtProcessReport(-2), ACL_ERROR_RT_PARAM_INVALID);
  on_another_thread([] { EXPECT_EQ(aclrtProcessReport(-1), ACL_ERROR_RT_PARAM_INVALID); });
}

TEST_F(ReportTest, OneThreadPerStream) {
  EXPECT_EQ(aclrtSubscribeReport(this_thread(), stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSubscribeReport(this_thread() + 1, stream_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtUnSubscribeReport(this_thread() + 1, stream_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtUnSubscribeReport(this_thread(), stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtUnSubscribeReport(this_thread(), stream_), ACL_ERROR_RT_PARAM_INVALID);
  int calls = 0;
  EXPECT_EQ(launch(count, &calls, ACL_CALLBACK_BLOCK), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_NE(take_message().find("aclrtSubscribeReport"), std::string::npos);
  EXPECT_EQ(aclrtProcessReport(-1), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(calls, 0);
}

TEST_F(ReportTest, UnsubscribingDropsWhatHasNotBegun) {
  int calls = 0;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(launch(count, &calls, ACL_CALLBACK_BLOCK), ACL_SUCCESS);
  EXPECT_EQ(aclrtUnSubscribeReport(this_thread(), stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_AICORE_EXCEPTION);
  EXPECT_NE(take_message().find("dropped"), std::string::npos);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(calls, 0);
}

TEST_F(ReportTest, AFailureNobodyAskedForIsReportedByDestroy) {
  int calls = 0;
  EXPECT_EQ(launch(count, &calls, ACL_CALLBACK_BLOCK), ACL_SUCCESS);
  EXPECT_EQ(aclrtUnSubscribeReport(this_thread(), stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream_), ACL_ERROR_RT_AICORE_EXCEPTION);
  EXPECT_EQ(aclrtDestroyStream(stream_), ACL_ERROR_RT_PARAM_INVALID);
  stream_ = nullptr;
}

TEST_F(ReportTest, ArgumentsAreChecked) {
  EXPECT_EQ(launch(nullptr, nullptr, ACL_CALLBACK_BLOCK), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(launch(count, nullptr, static_cast<aclrtCallbackBlockType>(1000)),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtLaunchCallback(count, nullptr, ACL_CALLBACK_BLOCK, garbage(3)),
            ACL_ERROR_RT_PARAM_INVALID);
}

// As programs have it: a thread of its own processes the reports until it is told to end.
TEST_F(StreamTest, AProcessingThreadServesSeveralStreams) {
  aclrtStream other = nullptr;
  ASSERT_EQ(aclrtCreateStream(&other), ACL_SUCCESS);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> id{0};
  std::thread processing([&] {
    id = this_thread();
    while (!stop) aclrtProcessReport(5);
  });
  while (id == 0) std::this_thread::yield();
  int calls[2] = {0, 0};
  const aclrtStream pair[2] = {stream_, other};
  for (int s = 0; s < 2; ++s) ASSERT_EQ(aclrtSubscribeReport(id, pair[s]), ACL_SUCCESS);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(aclrtLaunchCallback(count, &calls[i % 2], ACL_CALLBACK_BLOCK, pair[i % 2]),
              ACL_SUCCESS);
  }
  for (int s = 0; s < 2; ++s) EXPECT_EQ(aclrtSynchronizeStream(pair[s]), ACL_SUCCESS);
  EXPECT_EQ(calls[0], 50);
  EXPECT_EQ(calls[1], 50);
  for (int s = 0; s < 2; ++s) EXPECT_EQ(aclrtUnSubscribeReport(id, pair[s]), ACL_SUCCESS);
  stop = true;
  processing.join();
  EXPECT_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
}

}  // namespace
