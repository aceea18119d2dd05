// Everything at once from several threads; ThreadSanitizer builds run this too.
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "runtime_support.h"

namespace {

using namespace moe::acl_test;  // NOLINT: the test's own vocabulary

constexpr int kThreads = 4;

template <class Body>
void on_threads(Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&body, i] {
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      body(i);
      EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A stream, blocks and an event per thread, all through the shared registries.
TEST_F(RuntimeTest, ThreadsUseTheirOwnObjects) {
  on_threads([](int number) {
    for (int round = 0; round < 40; ++round) {
      aclrtStream stream = nullptr;
      aclrtEvent event = nullptr;
      ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
      ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
      void* const block = malloc_device(256);
      std::vector<unsigned char> result(256);
      EXPECT_EQ(aclrtMemsetAsync(block, 256, number + 1, 256, stream), ACL_SUCCESS);
      EXPECT_EQ(aclrtMemcpyAsync(result.data(), 256, block, 256, ACL_MEMCPY_DEVICE_TO_HOST, stream),
                ACL_SUCCESS);
      EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
      EXPECT_EQ(aclrtRecordEvent(event, stream), ACL_SUCCESS);
      EXPECT_EQ(aclrtSynchronizeEvent(event), ACL_SUCCESS);
      EXPECT_EQ(result, std::vector<unsigned char>(256, static_cast<unsigned char>(number + 1)));
      EXPECT_EQ(aclrtDestroyEvent(event), ACL_SUCCESS);
      EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
    }
  });
}

// One stream for all: no work is lost, none runs twice.
TEST_F(StreamTest, ThreadsShareAStream) {
  constexpr int kRounds = 100;
  std::vector<void*> blocks;
  for (int i = 0; i < kThreads; ++i) blocks.push_back(malloc_device(kRounds));
  on_threads([&](int number) {
    char* const block = static_cast<char*>(blocks[number]);
    for (int i = 0; i < kRounds; ++i) {
      EXPECT_EQ(aclrtMemsetAsync(block + i, 1, i, 1, stream_), ACL_SUCCESS);
      if (i % 16 == 0) {
        EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
      }
    }
  });
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  for (void* const block : blocks) {
    std::vector<char> result(kRounds);
    EXPECT_EQ(aclrtMemcpy(result.data(), kRounds, block, kRounds, ACL_MEMCPY_DEVICE_TO_HOST),
              ACL_SUCCESS);
    for (int i = 0; i < kRounds; ++i) EXPECT_EQ(result[i], i);
    EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  }
}

// Of all threads that destroy a handle or free a block, one succeeds.
TEST_F(RuntimeTest, EndsHappenOnce) {
  for (int round = 0; round < 20; ++round) {
    aclrtStream stream = nullptr;
    aclrtEvent event = nullptr;
    ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateEvent(&event), ACL_SUCCESS);
    void* const block = malloc_device(64);
    EXPECT_EQ(aclrtMemsetAsync(block, 64, 1, 64, stream), ACL_SUCCESS);
    std::atomic<int> streams{0};
    std::atomic<int> events{0};
    std::atomic<int> frees{0};
    on_threads([&](int) {
      aclrtSynchronizeStream(stream);
      frees += aclrtFree(block) == ACL_SUCCESS ? 1 : 0;
      aclrtRecordEvent(event, stream);
      streams += aclrtDestroyStream(stream) == ACL_SUCCESS ? 1 : 0;
      events += aclrtDestroyEvent(event) == ACL_SUCCESS ? 1 : 0;
    });
    EXPECT_EQ(streams, 1);
    EXPECT_EQ(events, 1);
    EXPECT_EQ(frees, 1);
  }
}

// Random calls on shared handles: any code may come back, nothing may break.
TEST_F(RuntimeTest, ThreadsDoAnythingToEachOthersHandles) {
  constexpr unsigned kSeed = 20;
  SCOPED_TRACE(kSeed);
  constexpr int kSlots = 4;
  std::atomic<void*> streams[kSlots] = {};
  std::atomic<void*> events[kSlots] = {};
  on_threads([&](int number) {
    std::mt19937 random(kSeed + static_cast<unsigned>(number));
    char host[8] = {};
    for (int i = 0; i < 300; ++i) {
      auto& stream = streams[random() % kSlots];
      auto& event = events[random() % kSlots];
      void* made = nullptr;
      switch (random() % 9) {
        case 0:
          if (aclrtCreateStream(&made) == ACL_SUCCESS) aclrtDestroyStream(stream.exchange(made));
          break;
        case 1:
          if (aclrtCreateEvent(&made) == ACL_SUCCESS) aclrtDestroyEvent(event.exchange(made));
          break;
        case 2:
          aclrtRecordEvent(event, stream);
          break;
        case 3:
          aclrtStreamWaitEvent(stream, event);
          break;
        case 4:
          aclrtSynchronizeStream(stream);
          break;
        case 5:
          aclrtSynchronizeEvent(event);
          break;
        case 6:
          aclrtResetEvent(event, stream);
          break;
        case 7:
          aclrtMemset(host, 8, 1, 8);
          aclrtSynchronizeDevice();
          break;
        default:
          if (aclrtMalloc(&made, 64, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS) {
            aclrtMemsetAsync(made, 64, 1, 64, stream);
            aclrtFree(made);
          }
      }
      aclGetRecentErrMsg();
    }
  });
  for (int i = 0; i < kSlots; ++i) {
    if (streams[i] != nullptr) {
      EXPECT_EQ(aclrtDestroyStream(streams[i]), ACL_SUCCESS);
    }
    if (events[i] != nullptr) {
      EXPECT_EQ(aclrtDestroyEvent(events[i]), ACL_SUCCESS);
    }
  }
}

// Contexts end under the feet of the threads that use them.
TEST_F(RuntimeTest, ContextsComeAndGo) {
  std::atomic<void*> shared{nullptr};
  on_threads([&](int number) {
    for (int i = 0; i < 60; ++i) {
      if (number == 0) {
        aclrtContext made = nullptr;
        ASSERT_EQ(aclrtCreateContext(&made, 0), ACL_SUCCESS);
        if (void* const old = shared.exchange(made)) {
          EXPECT_EQ(aclrtDestroyContext(old), ACL_SUCCESS);
        }
      } else if (void* const context = shared) {
        aclrtSetCurrentContext(context);
        aclrtSynchronizeStream(nullptr);
      }
    }
  });
  if (void* const last = shared) {
    EXPECT_EQ(aclrtDestroyContext(last), ACL_SUCCESS);
  }
}

}  // namespace
