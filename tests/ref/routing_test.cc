#include "ref/routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace {

using Ints = std::vector<int64_t>;

TEST(RefRouting, ArgsortIsStableAndPutsUnroutedLast) {
  EXPECT_EQ(ref::stable_argsort({2, 0, -1, 2, 0, -5, 1}), (Ints{1, 4, 6, 0, 3, 2, 5}));
}

TEST(RefRouting, InverseOfTheSample) {
  EXPECT_EQ(ref::inverse({1, 3, 0, 5, 2, 4}), (Ints{2, 0, 4, 1, 5, 3}));
}

TEST(RefRouting, UniformChoosesDistinctExperts) {
  const Ints experts = ref::uniform_routing(100, 8, 9, 1);
  ASSERT_EQ(experts.size(), 800u);
  for (size_t t = 0; t < 100; ++t) {
    const std::set<int64_t> own(experts.begin() + static_cast<int64_t>(t) * 8,
                                experts.begin() + static_cast<int64_t>(t) * 8 + 8);
    EXPECT_EQ(own.size(), 8u);
    EXPECT_TRUE(*own.begin() >= 0 && *own.rbegin() < 9);
  }
}

TEST(RefRouting, ZipfPrefersTheFirstExperts) {
  const Ints experts = ref::zipf_routing(2000, 1, 64, 2);
  EXPECT_GT(std::count(experts.begin(), experts.end(), 0),
            4 * std::count(experts.begin(), experts.end(), 15));
}

TEST(RefRouting, AllToOne) { EXPECT_EQ(ref::all_to_one_routing(2, 3, 7), Ints(6, 7)); }

TEST(RefRouting, PermutationHoldsEachValueOnce) {
  Ints values = ref::permutation(1000, 3);
  EXPECT_FALSE(std::is_sorted(values.begin(), values.end()));
  std::sort(values.begin(), values.end());
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(values[static_cast<size_t>(i)], i);
}

}  // namespace
