// Holds a stream: what is queued afterwards waits until release(), so that "not yet" is no race.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdint>

#include "acl/acl.h"

namespace moe::acl_test {

class HeldStream {
 public:
  explicit HeldStream(aclrtStream stream) : stream_(stream) {
    EXPECT_EQ(aclrtSubscribeReport(thread(), stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtLaunchCallback([](void*) {}, this, ACL_CALLBACK_BLOCK, stream_), ACL_SUCCESS);
  }
  ~HeldStream() { release(); }
  HeldStream(const HeldStream&) = delete;
  HeldStream& operator=(const HeldStream&) = delete;

  // The stream goes on once its callback has run, here.
  void release() {
    if (stream_ == nullptr) return;
    EXPECT_EQ(aclrtProcessReport(-1), ACL_SUCCESS);
    EXPECT_EQ(aclrtUnSubscribeReport(thread(), stream_), ACL_SUCCESS);
    stream_ = nullptr;
  }

 private:
  static uint64_t thread() { return static_cast<uint64_t>(pthread_self()); }

  aclrtStream stream_;
};

}  // namespace moe::acl_test
