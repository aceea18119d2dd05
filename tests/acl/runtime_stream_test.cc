// Streams: order, what is seen without synchronising, handles, and pinned memory.
#include <cstring>
#include <thread>
#include <vector>

#include "held_stream.h"
#include "runtime_support.h"

namespace {

using namespace moe::acl_test;  // NOLINT: the test's own vocabulary

int32_t read_int(const void* block) {
  int32_t value = 0;
  EXPECT_EQ(aclrtMemcpy(&value, 4, block, 4, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  return value;
}

TEST_F(StreamTest, WithoutSynchronisingStaleDataIsSeen) {
  void* const block = malloc_device(4);
  ASSERT_EQ(aclrtMemset(block, 4, 0, 4), ACL_SUCCESS);
  const int32_t fresh = 42;
  {
    HeldStream held(stream_);
    EXPECT_EQ(aclrtMemcpyAsync(block, 4, &fresh, 4, ACL_MEMCPY_HOST_TO_DEVICE, stream_),
              ACL_SUCCESS);
    EXPECT_EQ(read_int(block), 0);
    aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
    EXPECT_EQ(aclrtStreamQuery(stream_, &status), ACL_SUCCESS);
    EXPECT_EQ(status, ACL_STREAM_STATUS_NOT_READY);
  }
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(read_int(block), 42);
  aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
  EXPECT_EQ(aclrtStreamQuery(stream_, &status), ACL_SUCCESS);
  EXPECT_EQ(status, ACL_STREAM_STATUS_COMPLETE);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
}

// Each step only gives the expected result after the one before.
TEST_F(StreamTest, WorkRunsInOrder) {
  constexpr size_t kSize = 257;
  char* const block = static_cast<char*>(malloc_device(kSize));
  HeldStream held(stream_);
  EXPECT_EQ(aclrtMemsetAsync(block, kSize, 0, kSize, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemsetAsync(block, kSize, 1, 1, stream_), ACL_SUCCESS);
  for (size_t i = 1; i < kSize; ++i) {
    EXPECT_EQ(
        aclrtMemcpyAsync(block + i, 1, block + i - 1, 1, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_),
        ACL_SUCCESS);
  }
  std::vector<char> result(kSize, 9);
  EXPECT_EQ(
      aclrtMemcpyAsync(result.data(), kSize, block, kSize, ACL_MEMCPY_DEVICE_TO_HOST, stream_),
      ACL_SUCCESS);
  held.release();
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(result, std::vector<char>(kSize, 1));
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
}

TEST_F(StreamTest, StreamsDoNotWaitForEachOther) {
  aclrtStream other = nullptr;
  ASSERT_EQ(aclrtCreateStreamWithConfig(&other, 3, 1), ACL_SUCCESS);
  void* const block = malloc_device(4);
  {
    HeldStream held(stream_);
    EXPECT_EQ(aclrtMemsetAsync(block, 4, 1, 4, other), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(other), ACL_SUCCESS);
    EXPECT_EQ(aclrtMemsetAsync(block, 4, 2, 4, nullptr), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  }
  EXPECT_EQ(read_int(block), 0x02020202);
  EXPECT_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
}

TEST_F(StreamTest, FreedMemoryLivesUntilTheQueueHasPassedIt) {
  void* const from = malloc_device(1 << 20);
  void* const to = malloc_device(1 << 20);
  ASSERT_EQ(aclrtMemset(from, 1 << 20, 5, 1 << 20), ACL_SUCCESS);
  std::vector<char> result(1 << 20, 0);
  HeldStream held(stream_);
  EXPECT_EQ(aclrtMemcpyAsync(to, 1 << 20, from, 1 << 20, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_),
            ACL_SUCCESS);
  EXPECT_EQ(
      aclrtMemcpyAsync(result.data(), 1 << 20, to, 1 << 20, ACL_MEMCPY_DEVICE_TO_HOST, stream_),
      ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(from), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(to), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(to), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemcpyAsync(to, 4, from, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_),
            ACL_ERROR_RT_PARAM_INVALID);
  held.release();
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(result, std::vector<char>(1 << 20, 5));
}

TEST_F(StreamTest, DestroyingWaitsForPendingWork) {
  void* const block = malloc_device(4);
  ASSERT_EQ(aclrtMemset(block, 4, 0, 4), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemsetAsync(block, 4, 3, 4, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(read_int(block), 0x03030303);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);

  aclrtStreamStatus status;
  EXPECT_EQ(aclrtDestroyStream(stream_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_NE(take_message().find("destroyed"), std::string::npos);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, 5), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtStreamQuery(stream_, &status), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSubscribeReport(this_thread(), stream_), ACL_ERROR_RT_PARAM_INVALID);
  stream_ = nullptr;
}

TEST_F(StreamTest, ForeignHandlesAreRecognised) {
  aclrtEvent event = nullptr;
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
  ASSERT_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
  int on_the_stack = 0;
  const auto bits = reinterpret_cast<uintptr_t>(stream_);
  for (void* const wrong : {event, context, static_cast<void*>(&on_the_stack), garbage(1),
                            garbage(UINT64_MAX), garbage(bits + 1), garbage(bits ^ 1),
                            garbage(bits | 0xFFFFFFull << 32), garbage(bits & ~0xFFFFFFFFull)}) {
    SCOPED_TRACE(wrong);
    EXPECT_EQ(aclrtSynchronizeStream(wrong), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(aclrtDestroyStream(wrong), ACL_ERROR_RT_PARAM_INVALID);
  }
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeEvent(stream_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtDestroyEvent(stream_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtDestroyContext(stream_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFree(stream_), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
}

TEST_F(StreamTest, WaitingEndsWithTheTime) {
  HeldStream held(stream_);
  // From another thread: this one could not wait at all.
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&context), ACL_SUCCESS);
  on_another_thread([&] {
    ASSERT_EQ(aclrtSetCurrentContext(context), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, 0), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, 30), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    EXPECT_EQ(take_message(), "stream: still busy after 30 ms");
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, -2), ACL_ERROR_RT_PARAM_INVALID);
  });
  held.release();
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, -1), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_, 100), ACL_SUCCESS);
}

TEST_F(StreamTest, TheDeviceWaitsForAllStreams) {
  aclrtStream other = nullptr;
  ASSERT_EQ(aclrtCreateStream(&other), ACL_SUCCESS);
  constexpr size_t kSize = 1 << 16;
  char* const block = static_cast<char*>(malloc_device(3 * kSize));
  ASSERT_EQ(aclrtMemset(block, 3 * kSize, 0, 3 * kSize), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemsetAsync(block, kSize, 1, kSize, stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemsetAsync(block + kSize, kSize, 1, kSize, other), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemsetAsync(block + 2 * kSize, kSize, 1, kSize, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  std::vector<char> result(3 * kSize);
  EXPECT_EQ(aclrtMemcpy(result.data(), 3 * kSize, block, 3 * kSize, ACL_MEMCPY_DEVICE_TO_HOST),
            ACL_SUCCESS);
  EXPECT_EQ(result, std::vector<char>(3 * kSize, 1));
  EXPECT_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
}

TEST_F(RuntimeTest, ManyStreamsComeAndGo) {
  std::vector<aclrtStream> old;
  for (int i = 0; i < 200; ++i) {
    aclrtStream stream = nullptr;
    ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    for (const aclrtStream other : old) ASSERT_NE(stream, other);
    ASSERT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    old.push_back(stream);
  }
  for (const aclrtStream stream : old) {
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_PARAM_INVALID);
  }
}

}  // namespace
