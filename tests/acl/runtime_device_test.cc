// aclInit and aclFinalize, the device, contexts, and what is bound to a thread.
#include "runtime_support.h"

namespace {

using namespace moe::acl_test;  // NOLINT: the test's own vocabulary

TEST(Init, TwiceIsReportedAndHarmless) {
  EXPECT_EQ(aclFinalize(), ACL_ERROR_UNINITIALIZE);
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE);
  EXPECT_NE(take_message(), "");
  EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
  EXPECT_EQ(aclInit("no/such/file"), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

TEST(Device, NothingButContextCallsWorkBeforeItIsSet) {
  const auto expect_none = [](aclError code) {
    EXPECT_EQ(code, ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_NE(take_message().find("aclrtSetDevice"), std::string::npos);
  };
  void* out = nullptr;
  void* const any = garbage(0x1000);
  char bytes[8] = {};
  int32_t device = -7;
  size_t size = 0;
  aclrtStreamStatus stream_status;
  aclrtEventRecordedStatus event_status;
  float ms = 0;
  expect_none(aclrtMalloc(&out, 8, ACL_MEM_MALLOC_HUGE_FIRST));
  expect_none(aclrtFree(any));
  expect_none(aclrtMemcpy(bytes, 8, bytes, 8, ACL_MEMCPY_HOST_TO_HOST));
  expect_none(aclrtMemcpyAsync(bytes, 8, bytes, 8, ACL_MEMCPY_HOST_TO_HOST, nullptr));
  expect_none(aclrtMemset(bytes, 8, 0, 8));
  expect_none(aclrtMemsetAsync(bytes, 8, 0, 8, nullptr));
  expect_none(aclrtGetMemInfo(ACL_DDR_MEM, &size, &size));
  expect_none(aclrtCreateStream(&out));
  expect_none(aclrtCreateStreamWithConfig(&out, 0, 0));
  expect_none(aclrtDestroyStream(any));
  expect_none(aclrtSynchronizeStream(nullptr));
  expect_none(aclrtSynchronizeStreamWithTimeout(nullptr, 1));
  expect_none(aclrtStreamQuery(nullptr, &stream_status));
  expect_none(aclrtStreamWaitEvent(nullptr, any));
  expect_none(aclrtCreateEvent(&out));
  expect_none(aclrtCreateEventWithFlag(&out, ACL_EVENT_SYNC));
  expect_none(aclrtDestroyEvent(any));
  expect_none(aclrtRecordEvent(any, nullptr));
  expect_none(aclrtResetEvent(any, nullptr));
  expect_none(aclrtSynchronizeEvent(any));
  expect_none(aclrtSynchronizeEventWithTimeout(any, 1));
  expect_none(aclrtQueryEventStatus(any, &event_status));
  expect_none(aclrtEventElapsedTime(&ms, any, any));
  expect_none(aclrtSubscribeReport(1, nullptr));
  expect_none(aclrtUnSubscribeReport(1, nullptr));
  expect_none(aclrtLaunchCallback([](void*) {}, nullptr, ACL_CALLBACK_BLOCK, nullptr));
  expect_none(aclrtSynchronizeDevice());
  expect_none(aclrtGetDevice(&device));
  expect_none(aclrtGetCurrentContext(&out));
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(device, -7);

  uint32_t count = 0;
  EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_SUCCESS);
  EXPECT_EQ(count, 1u);
  aclrtRunMode mode = ACL_DEVICE;
  EXPECT_EQ(aclrtGetRunMode(&mode), ACL_SUCCESS);
  EXPECT_EQ(mode, ACL_HOST);
  EXPECT_NE(aclrtGetSocName(), nullptr);
  EXPECT_EQ(aclrtMallocHost(&out, 8), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(out), ACL_SUCCESS);
}

TEST(Device, ArgumentsAreCheckedBeforeTheContext) {
  void* out = nullptr;
  char bytes[8] = {};
  EXPECT_EQ(aclrtMalloc(nullptr, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMalloc(&out, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy(nullptr, 8, bytes, 8, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy(bytes, 4, bytes, 8, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemcpy(bytes, 8, bytes, 0, ACL_MEMCPY_DEFAULT), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(nullptr, 8, 0, 8), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCreateStream(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDestroyStream(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(nullptr, -2), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtCreateEvent(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetDevice(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetDeviceCount(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetRunMode(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCreateContext(nullptr, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetCurrentContext(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetVersion(nullptr, nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST(Device, OnlyDeviceZeroExists) {
  aclrtContext context = nullptr;
  for (const int32_t id : {-1, 1, 7}) {
    EXPECT_EQ(aclrtSetDevice(id), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_NE(take_message().find(std::to_string(id)), std::string::npos);
    EXPECT_EQ(aclrtResetDevice(id), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_EQ(aclrtCreateContext(&context, id), ACL_ERROR_RT_INVALID_DEVICEID);
  }
  EXPECT_EQ(context, nullptr);
}

TEST(Device, SetAndResetAreCounted) {
  int32_t device = -1;
  EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_NULL);
}

TEST_F(RuntimeTest, TheBindingIsPerThread) {
  on_another_thread([] {
    int32_t device = -1;
    EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
    EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
  });
  int32_t device = -1;
  EXPECT_EQ(aclrtGetDevice(&device), ACL_SUCCESS);
}

TEST_F(RuntimeTest, MemoryOutlivesAReset) {
  void* const block = malloc_device(64);
  EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
}

TEST_F(RuntimeTest, ContextsAreCurrentOnTheThreadThatMakesThem) {
  aclrtContext primary = nullptr;
  aclrtContext made = nullptr;
  aclrtContext current = nullptr;
  EXPECT_EQ(aclrtGetCurrentContext(&primary), ACL_SUCCESS);
  EXPECT_EQ(aclrtCreateContext(&made, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetCurrentContext(&current), ACL_SUCCESS);
  EXPECT_EQ(current, made);
  EXPECT_NE(made, primary);
  on_another_thread([made] {
    EXPECT_EQ(aclrtSetCurrentContext(made), ACL_SUCCESS);
    aclrtContext there = nullptr;
    EXPECT_EQ(aclrtGetCurrentContext(&there), ACL_SUCCESS);
    EXPECT_EQ(there, made);
  });
  EXPECT_EQ(aclrtDestroyContext(made), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetCurrentContext(&current), ACL_ERROR_RT_CONTEXT_NULL);
  EXPECT_EQ(aclrtSetCurrentContext(made), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtDestroyContext(made), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtDestroyContext(primary), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtDestroyContext(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetCurrentContext(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSetCurrentContext(primary), ACL_SUCCESS);
}

TEST_F(StreamTest, AStreamBelongsToItsContext) {
  aclrtContext primary = nullptr;
  aclrtContext made = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&primary), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateContext(&made, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_STREAM_CONTEXT);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetCurrentContext(primary), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyContext(made), ACL_SUCCESS);
}

TEST_F(RuntimeTest, VersionsAndLastErrors) {
  int32_t major = -1;
  int32_t minor = -1;
  int32_t patch = -1;
  EXPECT_EQ(aclrtGetVersion(&major, &minor, &patch), ACL_SUCCESS);
  EXPECT_GE(major, 1);
  EXPECT_GE(minor, 0);
  EXPECT_GE(patch, 0);

  aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtFree(garbage(64)), ACL_ERROR_RT_PARAM_INVALID);
  on_another_thread([] { EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS); });
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
}

TEST(Message, IsTheThreadsNewestAndClearedByReading) {
  take_message();
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  EXPECT_EQ(aclrtSetDevice(3), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtSetDevice(4), ACL_ERROR_RT_INVALID_DEVICEID);
  on_another_thread([] { EXPECT_EQ(aclGetRecentErrMsg(), nullptr); });
  const char* const message = aclGetRecentErrMsg();
  ASSERT_NE(message, nullptr);
  const std::string copy = message;
  EXPECT_EQ(copy, "deviceId: got 4, needs 0, the only device");
  // Good until the next call of the function, whatever fails meanwhile.
  EXPECT_EQ(aclrtSetDevice(5), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(message, copy);
  EXPECT_EQ(take_message(), "deviceId: got 5, needs 0, the only device");
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
}

}  // namespace
