// Windows over rows from windows over experts.
#include "moe/expert_range.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "ops/rejection.h"

namespace test {
namespace {

using moe::ep_range_of_rank, moe::expert_range, moe::EpRange;

void expect_range(const EpRange& got, int64_t begin, int64_t end) {
  EXPECT_EQ(got.begin, begin);
  EXPECT_EQ(got.end, end);
}

TEST(ExpertRange, IsPrefixSums) {
  const std::vector<int64_t> counts = {3, 0, 5, 1};
  expect_range(expert_range(counts, 0, 4), 0, 9);
  expect_range(expert_range(counts, 1, 3), 3, 8);
  expect_range(expert_range(counts, 1, 2), 3, 3);
  expect_range(expert_range(counts, 4, 4), 9, 9);
  expect_range(expert_range(std::vector<int32_t>{3, 0, 5, 1}, 2, 4), 3, 9);
}

TEST(ExpertRange, OfRanksTileTheRows) {
  for (const int64_t experts : {0, 1, 5, 8, 13}) {
    for (const int64_t ranks : {1, 2, 3, 8, 20}) {
      std::vector<int32_t> counts;
      for (int64_t e = 0; e < experts; ++e) counts.push_back(static_cast<int32_t>(e * e % 7));
      int64_t next = 0;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const EpRange range = ep_range_of_rank(counts, rank, ranks);
        const EpRange same =
            expert_range(counts, rank * experts / ranks, (rank + 1) * experts / ranks);
        expect_range(range, same.begin, same.end);
        EXPECT_EQ(range.begin, next);
        next = range.end;
      }
      expect_range(expert_range(counts, 0, experts), 0, next);
    }
  }
  // Where rank * experts leaves 64 bits.
  const std::vector<int64_t> counts(4, 10);
  const int64_t ranks = int64_t{1} << 62;
  expect_range(ep_range_of_rank(counts, ranks - 1, ranks), 30, 40);
}

TEST(ExpertRange, Rejects) {
  const std::vector<int64_t> counts = {3, -1, 5};
  const std::vector<int64_t> huge = {INT64_MAX, 1};
  expect_rejected("expert_begin", "-1, but needs 0 <= expert_begin <= 2, the given expert_end",
                  [&] { expert_range(counts, -1, 2); });
  expect_rejected("expert_begin", "2, but needs 0 <= expert_begin <= 1, the given expert_end",
                  [&] { expert_range(counts, 2, 1); });
  expect_rejected("expert_end", "4, but tokens_per_expert has 3 experts only",
                  [&] { expert_range(counts, 0, 4); });
  expect_rejected("tokens_per_expert", "-1 for expert 1, but a count must be >= 0",
                  [&] { expert_range(counts, 2, 3); });
  expect_rejected("tokens_per_expert", "-1 for expert 1, but a count must be >= 0",
                  [&] { expert_range(counts, 0, 1); });
  expect_rejected("tokens_per_expert",
                  "sums up to 2^63 or more at expert 1, but rows must stay below",
                  [&] { expert_range(huge, 0, 2); });
  expect_rejected("num_ranks", "0, but needs at least 1", [&] { ep_range_of_rank(huge, 0, 0); });
  expect_rejected("rank", "2, but needs 0 <= rank < num_ranks 2",
                  [&] { ep_range_of_rank(huge, 2, 2); });
}

}  // namespace
}  // namespace test
