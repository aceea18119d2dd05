// Every dtype, every K and H around the vector widths: bit for bit the oracles' results, forward
// and gradient.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ops/large_windows.h"
#include "ops/unpermute_case.h"
#include "ref/routing.h"
#include "support/effort.h"

namespace test {
namespace {

using moe::DType;

// Widths of 1 to 2N+1 for vectors of up to 32 elements, around the 64 partial sums of a dot
// product, and around the powers of two behind.
std::vector<int64_t> hidden_sizes() {
  std::vector<int64_t> sizes;
  for (int64_t h = 1; h <= 67; h += kSanitized ? 3 : 1) sizes.push_back(h);
  for (const int64_t power : {128, 192, 256, 512, 1024}) {
    for (const int64_t h : {power - 1, power, power + 1}) sizes.push_back(h);
  }
  return sizes;
}

class UnpermuteWithEpShapes : public testing::TestWithParam<DType> {};

TEST_P(UnpermuteWithEpShapes, HiddenSizes) {
  for (const int64_t h : hidden_sizes()) {
    for (const int64_t top_k : {1, 2, 3, 8}) {
      const int64_t num_slots = 5 * top_k;
      UnpermuteCase c{.dtype = GetParam(),
                      .probs_dtype = GetParam(),
                      .top_k = top_k,
                      .hidden_size = h,
                      .ep_range = moe::EpRange{num_slots / 4, num_slots - 1},
                      .seed = static_cast<uint64_t>(h)};
      expect_matches_oracle(c);
      c.probs_dtype.reset();
      expect_matches_oracle(c);
      if (HasFailure()) return;
    }
  }
}

TEST_P(UnpermuteWithEpShapes, LongRows) {
  for (const int64_t h : {2880, 4099, 7168}) {
    expect_matches_oracle({.dtype = GetParam(),
                           .probs_dtype = GetParam(),
                           .num_tokens = effort(20),
                           .top_k = 8,
                           .hidden_size = h,
                           .ep_range = moe::EpRange{1, effort(20) * 6}});
  }
}

TEST(UnpermuteWithEpLargeWindow, RowsFarAhead) {
  for (const UnpermuteCase& c : large_windows<UnpermuteCase>()) expect_matches_oracle(c);
}

TEST_P(UnpermuteWithEpShapes, TopK) {
  for (const int64_t top_k : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 31, 64, 512, 513, 1100}) {
    for (const int64_t h : {3, 33}) {
      UnpermuteCase c{.dtype = GetParam(),
                      .probs_dtype = GetParam(),
                      .num_tokens = 3,
                      .top_k = top_k,
                      .hidden_size = h};
      expect_matches_oracle(c);
      c.zero_probs = 0;
      expect_matches_oracle(c);
      c.ep_range = moe::EpRange{top_k / 2, top_k + top_k / 2};
      expect_matches_oracle(c);
      if (HasFailure()) return;
    }
  }
}

TEST_P(UnpermuteWithEpShapes, ManyTokensOnAllThreads) {
  for (const int64_t num_tokens : {1, 2, 63, 64, 65, 999}) {
    expect_matches_oracle({.dtype = GetParam(),
                           .probs_dtype = GetParam(),
                           .num_tokens = num_tokens,
                           .top_k = 2,
                           .hidden_size = 40,
                           .ep_range = moe::EpRange{num_tokens / 2, num_tokens * 2},
                           .num_threads = 3});
  }
}

// Outputs beyond the second-level caches, so that stores pass them by, of aligned rows and others.
TEST_P(UnpermuteWithEpShapes, LargeOutputs) {
  for (const int64_t h : {1536, 1537}) {
    for (const size_t slack : {0, 8}) {
      expect_matches_oracle({.dtype = GetParam(),
                             .probs_dtype = GetParam(),
                             .num_tokens = effort(700),
                             .top_k = 2,
                             .hidden_size = h,
                             .out_slack_bytes = slack,
                             .num_threads = 2});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, UnpermuteWithEpShapes, testing::ValuesIn(kFloatDTypes),
                         dtype_param_name);

TEST(UnpermuteWithEpDTypes, EveryAllowedCombination) {
  for (const DType dtype : kFloatDTypes) {
    for (const DType probs : kFloatDTypes) {
      if ((dtype == DType::kF64) != (probs == DType::kF64)) continue;
      for (const DType index : {DType::kI32, DType::kI64}) {
        for (const int64_t h : {7, 150}) {
          UnpermuteCase c{
              .dtype = dtype, .index_dtype = index, .probs_dtype = probs, .hidden_size = h};
          expect_matches_oracle(c);
          c.ep_range = moe::EpRange{4, 11};
          expect_matches_oracle(c);
        }
      }
    }
  }
}

TEST(UnpermuteWithEpRouting, RealRoutings) {
  constexpr int64_t kTokens = 64, kTopK = 4, kExperts = 32, kRanks = 4;
  for (const auto& experts : {ref::uniform_routing(kTokens, kTopK, kExperts, 5),
                              ref::zipf_routing(kTokens, kTopK, kExperts, 6),
                              // Every token names one expert, and that four times.
                              ref::all_to_one_routing(kTokens, kTopK, 9)}) {
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      const auto before = [&](int64_t expert) {
        return std::count_if(experts.begin(), experts.end(), [&](int64_t e) { return e < expert; });
      };
      expect_matches_oracle({.probs_dtype = DType::kF32,
                             .num_tokens = kTokens,
                             .top_k = kTopK,
                             .hidden_size = 48,
                             .ep_range = moe::EpRange{before(rank * kExperts / kRanks),
                                                      before((rank + 1) * kExperts / kRanks)},
                             .indices = ref::inverse(ref::stable_argsort(experts))});
    }
  }
}

}  // namespace
}  // namespace test
