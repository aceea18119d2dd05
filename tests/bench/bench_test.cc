// The ruler has to do what it says, and the cases have to be what their names say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "floor/floor.h"
#include "measure.h"
#include "routing.h"
#include "shapes.h"

namespace moe::bench {
namespace {

// 64-byte aligned bytes with a guard on both sides.
class Output {
 public:
  explicit Output(int64_t bytes) : bytes_(bytes), memory_(static_cast<size_t>(bytes + 4 * kGuard)) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data() + kGuard);
    data_ = memory_.data() + kGuard + (kGuard - address % kGuard) % kGuard;
    fill(std::byte{0xAB});
  }
  std::byte* data() { return data_; }
  void fill(std::byte value) {
    std::memset(data_, static_cast<int>(value), static_cast<size_t>(bytes_));
  }
  int64_t count(std::byte value) const { return std::count(data_, data_ + bytes_, value); }
  bool guards_intact() const {
    const auto untouched = [](std::byte b) { return b == std::byte{0}; };
    return std::all_of(memory_.data(), static_cast<const std::byte*>(data_), untouched) &&
           std::all_of(static_cast<const std::byte*>(data_) + bytes_,
                       memory_.data() + memory_.size(), untouched);
  }

 private:
  static constexpr int64_t kGuard = 64;
  int64_t bytes_;
  std::vector<std::byte> memory_;
  std::byte* data_;
};

// The sum of zeros is zero: a byte that a pass did not write keeps its old value.
TEST(Floor, WritesEveryByteAndNoOther) {
  for (const FloorPass& pass : floor_passes()) {
    for (int64_t read : {0, 1, 63, 64, 4096, 100000}) {
      for (int64_t written : {0, 1, 64, 100, 5000, 65536}) {
        for (int workers : {1, 2, 3}) {
          SCOPED_TRACE(pass.name() + ", " + std::to_string(read) + " to read, " +
                       std::to_string(written) + " to write, workers " + std::to_string(workers));
          const std::vector<std::byte> input(static_cast<size_t>(read));
          Output output(written);
          const Transfer transfer{input.data(), read, output.data(), written};
          run_floor_pass(pass, {&transfer, 1}, workers);
          EXPECT_EQ(output.count(std::byte{0}), written);
          EXPECT_TRUE(output.guards_intact());
        }
      }
    }
  }
}

// Each input byte shows in the one line that is written, so none is skipped. (25, 6 and 3 blocks
// per stream: no power of two, so the line waits for the end of the reading.)
TEST(Floor, ReadsEveryByte) {
  constexpr int64_t kRead = 8 * 3 * 64 + 77;
  for (const FloorPass& pass : floor_passes()) {
    for (int64_t at = 0; at < kRead; ++at) {
      std::vector<std::byte> input(kRead);
      input[static_cast<size_t>(at)] = std::byte{1};
      Output output(64);
      const Transfer transfer{input.data(), kRead, output.data(), 64};
      run_floor_pass(pass, {&transfer, 1}, 1);
      EXPECT_LT(output.count(std::byte{0}), 64) << pass.name() << ", byte " << at;
    }
  }
}

TEST(Floor, HasTwelvePasses) { EXPECT_EQ(floor_passes().size(), 12u); }

TEST(Routing, IsAPermutationOfDistinctExperts) {
  for (const char* distribution : {"uniform", "zipf"}) {
    SCOPED_TRACE(distribution);
    const Routing routing = route(distribution, 100, 16, 4);
    std::vector<int32_t> rows = routing.sorted_indices;
    std::sort(rows.begin(), rows.end());
    std::vector<int32_t> all(400);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(rows, all);
    // At most one slot of a token per expert.
    EXPECT_LE(*std::max_element(routing.rows_per_expert.begin(), routing.rows_per_expert.end()),
              100);
  }
}

TEST(Routing, WindowsTile) {
  const Routing routing = route("zipf", 64, 10, 2);
  int64_t end = 0;
  for (int64_t rank = 0; rank < 3; ++rank) {
    const EpRange window = window_of_rank(routing, rank, 3);
    EXPECT_EQ(window.begin, end);
    end = window.end;
  }
  EXPECT_EQ(end, 128);
}

TEST(Shapes, HaveNoCaseWithMoreRanksThanExperts) {
  for (bool quick : {false, true}) {
    const Shapes shapes = load_shapes(MOE_BENCH_SHAPES, quick);
    EXPECT_FALSE(shapes.sweep.empty());
    for (const Case& c : shapes.sweep) EXPECT_LE(c.num_ranks, c.num_experts) << c.name();
  }
}

TEST(Measure, MedianOfAnOddNumberIsTheMiddle) { EXPECT_EQ(median({5, 1, 9}), 5); }

}  // namespace
}  // namespace moe::bench
