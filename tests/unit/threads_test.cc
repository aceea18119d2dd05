#include "core/threads.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <vector>

namespace {

TEST(Threads, EveryWorkerRunsOnce) {
  for (const int workers : {0, 1, 2, 3, 7, 64}) {
    std::vector<std::atomic<int>> runs(64);
    moe::parallel_workers(workers, [&](int worker) { ++runs[static_cast<size_t>(worker)]; });
    for (int worker = 0; worker < 64; ++worker) {
      EXPECT_EQ(runs[static_cast<size_t>(worker)], worker < workers ? 1 : 0);
    }
  }
}

TEST(Threads, EveryChunkRunsOnceByAKnownWorker) {
  for (const int workers : {1, 2, 7}) {
    for (const int64_t chunks : {0, 1, 2, 6, 1000}) {
      std::vector<std::atomic<int>> runs(1000);
      std::atomic<bool> known{true};
      moe::parallel_chunks(chunks, workers, [&](int64_t chunk, int worker) {
        ++runs[static_cast<size_t>(chunk)];
        if (worker < 0 || worker >= workers) known = false;
      });
      for (int64_t chunk = 0; chunk < 1000; ++chunk) {
        ASSERT_EQ(runs[static_cast<size_t>(chunk)], chunk < chunks ? 1 : 0);
      }
      EXPECT_TRUE(known);
    }
  }
}

TEST(Threads, MoreChunksThan32BitsHold) {
  std::atomic<int> stopped{0};
  EXPECT_THROW(moe::parallel_chunks(int64_t{1} << 40, 2,
                                    [&](int64_t, int) {
                                      ++stopped;
                                      throw std::runtime_error("enough");
                                    }),
               std::runtime_error);
  EXPECT_GE(stopped, 1);
}

TEST(Threads, AnExceptionComesBackWhole) {
  for (const int workers : {1, 2, 7}) {
    try {
      moe::parallel_workers(workers, [&](int worker) {
        if (worker == workers - 1) throw std::out_of_range("from worker");
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::out_of_range& error) {
      EXPECT_STREQ(error.what(), "from worker");
    }
  }
}

TEST(Threads, OneLevelInsideAnother) {
  std::atomic<int> runs{0};
  moe::parallel_workers(3, [&](int) { moe::parallel_workers(3, [&](int) { ++runs; }); });
  EXPECT_EQ(runs, 9);
}

TEST(Threads, ThereIsAProcessor) { EXPECT_GE(moe::available_threads(), 1); }

}  // namespace
