// What the tests of the runtime share.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "acl/acl.h"

namespace moe::acl_test {

// The newest message of this thread, "" where there is none.
inline std::string take_message() {
  const char* message = aclGetRecentErrMsg();
  return message == nullptr ? "" : message;
}

inline uint64_t this_thread() { return static_cast<uint64_t>(pthread_self()); }

// Runs `body` on a thread to which no device is bound.
template <class Body>
void on_another_thread(Body body) {
  std::thread(std::move(body)).join();
}

inline void* malloc_device(size_t size) {
  void* address = nullptr;
  EXPECT_EQ(aclrtMalloc(&address, size, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  return address;
}

// The device is set on the test's thread, and reset afterwards.
class RuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    take_message();
  }
  void TearDown() override { EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS); }
};

// The same with a stream.
class StreamTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
  }
  void TearDown() override {
    if (stream_ != nullptr) {
      EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS);
    }
    RuntimeTest::TearDown();
  }

  aclrtStream stream_ = nullptr;
};

// A pointer that is no handle and no memory of ours.
inline void* garbage(uint64_t bits) { return reinterpret_cast<void*>(bits); }

}  // namespace moe::acl_test
