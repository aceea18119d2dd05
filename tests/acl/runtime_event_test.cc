// Events.
#include "held_stream.h"
#include "runtime_support.h"

namespace {

using namespace moe::acl_test;  // NOLINT: the test's own vocabulary

class EventTest : public StreamTest {
 protected:
  void SetUp() override {
    StreamTest::SetUp();
    ASSERT_EQ(aclrtCreateEvent(&event_), ACL_SUCCESS);
  }
  void TearDown() override {
    if (event_ != nullptr) {
      EXPECT_EQ(aclrtDestroyEvent(event_), ACL_SUCCESS);
    }
    StreamTest::TearDown();
  }
  bool complete() const {
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    EXPECT_EQ(aclrtQueryEventStatus(event_, &status), ACL_SUCCESS);
    return status == ACL_EVENT_RECORDED_STATUS_COMPLETE;
  }

  aclrtEvent event_ = nullptr;
};

TEST_F(EventTest, CompletesWhenItsStreamGetsThere) {
  EXPECT_FALSE(complete());
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_ERROR_RT_PARAM_INVALID);
  {
    HeldStream held(stream_);
    EXPECT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
    EXPECT_FALSE(complete());
  }
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);
  EXPECT_TRUE(complete());
}

TEST_F(EventTest, WaitingEndsWithTheTime) {
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
  HeldStream held(stream_);
  EXPECT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  on_another_thread([&] {
    ASSERT_EQ(aclrtSetCurrentContext(context), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event_, 0), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
    EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event_, 30), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
    EXPECT_EQ(take_message(), "event: not complete after 30 ms");
    EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event_, -5), ACL_ERROR_RT_PARAM_INVALID);
  });
  // The thread that has to run the callback would wait for ever.
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_ERROR_RT_PARAM_INVALID);
  held.release();
  EXPECT_EQ(aclrtSynchronizeEventWithTimeout(event_, -1), ACL_SUCCESS);
}

TEST_F(EventTest, AnotherStreamWaitsForIt) {
  aclrtStream other = nullptr;
  ASSERT_EQ(aclrtCreateStream(&other), ACL_SUCCESS);
  void* const block = malloc_device(1);
  ASSERT_EQ(aclrtMemset(block, 1, 0, 1), ACL_SUCCESS);
  {
    HeldStream held(stream_);
    EXPECT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtStreamWaitEvent(other, event_), ACL_SUCCESS);
    EXPECT_EQ(aclrtMemsetAsync(block, 1, 8, 1, other), ACL_SUCCESS);
    char seen = 9;
    EXPECT_EQ(aclrtMemcpy(&seen, 1, block, 1, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    EXPECT_EQ(seen, 0);
    // Waiting for the second stream needs this thread too, one stream further.
    EXPECT_EQ(aclrtSynchronizeStream(other), ACL_ERROR_RT_PARAM_INVALID);
    // The wait goes on without its event.
    EXPECT_EQ(aclrtDestroyEvent(event_), ACL_SUCCESS);
  }
  EXPECT_EQ(aclrtSynchronizeStream(other), ACL_SUCCESS);
  char seen = 9;
  EXPECT_EQ(aclrtMemcpy(&seen, 1, block, 1, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  EXPECT_EQ(seen, 8);
  EXPECT_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(event_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtRecordEvent(event_, stream_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtStreamWaitEvent(stream_, event_), ACL_ERROR_RT_PARAM_INVALID);
  event_ = nullptr;
}

TEST_F(EventTest, WaitingForAnEventThatWasNeverRecordedIsNoWait) {
  EXPECT_EQ(aclrtStreamWaitEvent(stream_, event_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
}

TEST_F(EventTest, ResetForgetsTheRecordInItsTurn) {
  EXPECT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  {
    HeldStream held(stream_);
    EXPECT_EQ(aclrtResetEvent(event_, stream_), ACL_SUCCESS);
    EXPECT_TRUE(complete());
  }
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_FALSE(complete());
  // A later record is not touched by an earlier reset.
  {
    HeldStream held(stream_);
    EXPECT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtResetEvent(event_, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  }
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_TRUE(complete());
}

TEST_F(EventTest, ElapsedTimeIsBetweenCompleteEvents) {
  aclrtEvent end = nullptr;
  ASSERT_EQ(aclrtCreateEventWithFlag(&end, ACL_EVENT_TIME_LINE), ACL_SUCCESS);
  float ms = -1;
  EXPECT_EQ(aclrtEventElapsedTime(&ms, event_, end), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(take_message(),
            "startEvent: not recorded, needs to be recorded and passed by its stream");
  EXPECT_EQ(aclrtRecordEvent(event_, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  {
    HeldStream held(stream_);
    EXPECT_EQ(aclrtRecordEvent(end, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtEventElapsedTime(&ms, event_, end), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(ms, -1.0f);
  }
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtEventElapsedTime(&ms, event_, end), ACL_SUCCESS);
  EXPECT_GT(ms, 0.0f);
  float back = 0;
  EXPECT_EQ(aclrtEventElapsedTime(&back, end, event_), ACL_SUCCESS);
  EXPECT_EQ(back, -ms);
  EXPECT_EQ(aclrtDestroyEvent(end), ACL_SUCCESS);
}

TEST_F(EventTest, ArgumentsAreChecked) {
  float ms = 0;
  aclrtEvent made = nullptr;
  EXPECT_EQ(aclrtCreateEventWithFlag(&made, 4), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCreateEventWithFlag(nullptr, ACL_EVENT_SYNC), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(aclrtCreateEventWithFlag(
                &made, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE | ACL_EVENT_CAPTURE_STREAM_PROGRESS),
            ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(made), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtRecordEvent(nullptr, stream_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtResetEvent(nullptr, stream_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtStreamWaitEvent(stream_, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSynchronizeEvent(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtQueryEventStatus(event_, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtEventElapsedTime(nullptr, event_, event_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtEventElapsedTime(&ms, nullptr, event_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtEventElapsedTime(&ms, event_, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtRecordEvent(event_, garbage(9)), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtRecordEvent(garbage(9), stream_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtQueryEventStatus(garbage(9), nullptr), ACL_ERROR_INVALID_PARAM);
}

// The default stream serves too.
TEST_F(EventTest, OnTheDefaultStream) {
  EXPECT_EQ(aclrtRecordEvent(event_, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(event_), ACL_SUCCESS);
  EXPECT_TRUE(complete());
}

}  // namespace
