// Windows: what belongs to the rank, what does not, and that nothing else is read. Rows behind the
// window's lie on memory that faults.
#include <gtest/gtest.h>

#include <limits>

#include "ops/few_tokens.h"
#include "ops/unpermute_case.h"
#include "ref/routing.h"

namespace test {
namespace {

using moe::DType;
using moe::EpRange;

constexpr int64_t kI32Min = std::numeric_limits<int32_t>::min();
constexpr int64_t kI32Max = std::numeric_limits<int32_t>::max();
constexpr int64_t kI64Min = std::numeric_limits<int64_t>::min();
constexpr int64_t kI64Max = std::numeric_limits<int64_t>::max();

// Cut, of one row, empty, and over padding; infinities and NaN in every row that has to be skipped.
TEST(UnpermuteWithEpWindows, EveryWindowOfASmallProblem) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (int64_t begin = 0; begin <= 10; ++begin) {
      for (int64_t end = begin; end <= 10; ++end) {
        for (const int64_t extra : {0, 1, 10}) {
          expect_matches_oracle({.dtype = dtype,
                                 .probs_dtype = DType::kF16,
                                 .top_k = 2,
                                 .ep_range = EpRange{begin, end},
                                 .rows = end - begin + extra,
                                 .values = Values::kAnyBits,
                                 .seed = static_cast<uint64_t>(begin * 11 + end)});
        }
      }
    }
  }
}

TEST(UnpermuteWithEpWindows, AbsentRangeIsTheRows) {
  for (const int64_t rows : {0, 1, 7, 14, 15, 16, 40}) {
    for (const bool with_probs : {false, true}) {
      UnpermuteCase c{.rows = rows};
      if (with_probs) c.probs_dtype = DType::kF32;
      expect_matches_oracle(c);
    }
  }
}

// Long stretches of slots outside the window, between others inside: whatever is packed at a time,
// some of it is empty.
TEST(UnpermuteWithEpWindows, StretchesOfSlotsOutside) {
  constexpr int64_t kSlots = 4096;
  std::vector<int64_t> indices(kSlots);
  int64_t inside = 0, outside = kSlots;
  for (size_t slot = 0; slot < indices.size(); ++slot) {
    indices[slot] = slot / 600 % 2 ? inside++ : --outside;
  }
  for (const int64_t hidden_size : {5, 70, 600}) {
    expect_matches_oracle({.probs_dtype = DType::kF32,
                           .num_tokens = kSlots,
                           .top_k = 1,
                           .hidden_size = hidden_size,
                           .ep_range = EpRange{0, inside},
                           .indices = indices,
                           .num_threads = 1});
  }
}

// Indices as data: whatever they hold, rows outside the window are not touched.
UnpermuteCase hostile(DType index_dtype, std::vector<int64_t> indices) {
  return {.index_dtype = index_dtype,
          .probs_dtype = DType::kF32,
          .num_tokens = 6,
          .top_k = 2,
          .ep_range = EpRange{3, 7},
          .indices = std::move(indices),
          .zero_probs = 0};
}

TEST(UnpermuteWithEpWindows, IndicesFarOutside) {
  expect_both_match(
      hostile(DType::kI32, {2, 3, 6, 7, -1, -3, kI32Min, kI32Max, kI32Min + 3, 4, -4, 12}));
  // Values whose lower 32 bits fall into the window.
  const int64_t wrap = int64_t{1} << 32;
  expect_both_match(hostile(DType::kI64, {wrap + 4, 4, kI64Min, kI64Max, kI64Min + 3, -wrap + 5, 3,
                                          6, kI32Max, kI32Min, 2, 7}));
  for (const DType index : {DType::kI32, DType::kI64}) {
    UnpermuteCase absent = hostile(index, {kI32Min, 0, -1, 3, kI32Max, 4, -7, 2, 5, 1, 4, 100});
    absent.ep_range.reset();
    absent.rows = 4;
    expect_both_match(absent);
  }
}

// The forward reads a row twice. In the gradient one of the slots has it; all other rows, both
// outputs' guards and every dot product are what they should be, on any number of threads.
TEST(UnpermuteWithEpWindows, DuplicatesStayInBounds) {
  for (const int threads : {1, 3}) {
    for (UnpermuteCase c : {hostile(DType::kI32, {3, 3, 3, 3, 6, 6, 0, 0, 5, 4, 4, 5}),
                            hostile(DType::kI64, std::vector<int64_t>(12, 4)),
                            hostile(DType::kI32, std::vector<int64_t>(12, 0))}) {
      c.num_threads = threads;
      c.hidden_size = 6000;
      expect_both_match(c);
    }
  }
}

TEST(UnpermuteWithEpWindows, DuplicatesLeaveARowOfOneOfTheirSlots) {
  UnpermuteCase c = hostile(DType::kI32, {3, 4, 4, 4, 5, 6, -1, -1, -1, -1, -1, -1});
  c.hidden_size = 5000;
  c.values = Values::kSmallInts;
  const UnpermuteData data(c);
  const UnpermuteOutputs got = data.run_grad({});
  const size_t row_bytes = 5000 * sizeof(float);
  const auto row_of = [&](const std::vector<std::byte>& rows, size_t row) {
    const auto begin = rows.begin() + static_cast<int64_t>(row * row_bytes);
    return std::vector<std::byte>(begin, begin + row_bytes);
  };
  bool found = false;
  for (const int64_t slot : {1, 2, 3}) {
    UnpermuteCase alone = c;
    alone.indices.assign(12, -1);
    alone.indices[static_cast<size_t>(slot)] = 4;
    found |= row_of(UnpermuteData(alone).expected().rows, 1) == row_of(got.rows, 1);
  }
  EXPECT_TRUE(found) << "the row is that of none of the three slots";
}

TEST(UnpermuteWithEpWindows, AllOutsideGivesPlusZero) {
  for (const DType dtype : kFloatDTypes) {
    UnpermuteCase c = hostile(DType::kI32, std::vector<int64_t>(12, -1));
    c.dtype = dtype;
    c.probs_dtype = dtype;
    c.hidden_size = 100;
    const UnpermuteData data(c);
    const auto zeros = [](const std::vector<std::byte>& bytes) {
      return bytes == std::vector<std::byte>(bytes.size());
    };
    EXPECT_TRUE(zeros(data.run_forward({}))) << c;
    const UnpermuteOutputs out = data.run_grad({});
    EXPECT_TRUE(zeros(out.rows) && zeros(out.probs)) << c;
  }
}

// A rank that received nothing, a batch without tokens, rows without elements.
TEST(UnpermuteWithEpWindows, EmptyTensors) {
  for (const DType dtype : kFloatDTypes) {
    for (const int64_t num_tokens : {0, 1, 5}) {
      for (const int64_t hidden_size : {0, 1, 33}) {
        const UnpermuteCase c{.dtype = dtype,
                              .probs_dtype = dtype,
                              .num_tokens = num_tokens,
                              .hidden_size = hidden_size};
        expect_matches_oracle(c);
        UnpermuteCase empty = c;
        empty.ep_range = EpRange{num_tokens, num_tokens};
        expect_matches_oracle(empty);
        empty.rows = 4;
        expect_matches_oracle(empty);
      }
    }
  }
}

// Rows beyond the window are the capacity's padding: zeros, however many.
TEST(UnpermuteWithEpWindows, PaddingBecomesZeros) {
  for (const int threads : {1, 3}) {
    expect_matches_oracle({.probs_dtype = DType::kF32,
                           .num_tokens = 50,
                           .top_k = 4,
                           .hidden_size = 3000,
                           .ep_range = EpRange{11, 190},
                           .rows = 1500,
                           .num_threads = threads});
  }
}

}  // namespace
}  // namespace test
