// Every dtype, every K and H around the vector widths: bit for bit the oracle's result.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ops/grad_case.h"
#include "ref/routing.h"
#include "support/effort.h"

namespace test {
namespace {

using moe::DType;

// Widths of 1 to 2N+1 for vectors of up to 32 elements, and around the powers of two behind.
std::vector<int64_t> hidden_sizes() {
  std::vector<int64_t> sizes;
  for (int64_t h = 1; h <= 67; h += kSanitized ? 3 : 1) sizes.push_back(h);
  for (const int64_t power : {128, 256, 512, 1024}) {
    for (const int64_t h : {power - 1, power, power + 1}) sizes.push_back(h);
  }
  return sizes;
}

class PermuteWithEpGradShapes : public testing::TestWithParam<DType> {};

TEST_P(PermuteWithEpGradShapes, HiddenSizes) {
  for (const int64_t h : hidden_sizes()) {
    for (const int64_t top_k : {1, 2, 3, 8}) {
      const int64_t num_slots = 5 * top_k;
      expect_matches_oracle({.dtype = GetParam(),
                             .top_k = top_k,
                             .hidden_size = h,
                             .ep_range = moe::EpRange{num_slots / 4, num_slots - 1},
                             .seed = static_cast<uint64_t>(h)});
      if (HasFailure()) return;
    }
  }
}

TEST_P(PermuteWithEpGradShapes, LongRows) {
  for (const int64_t h : {2880, 4099, 7168}) {
    expect_matches_oracle({.dtype = GetParam(),
                           .num_tokens = effort(20),
                           .top_k = 8,
                           .hidden_size = h,
                           .ep_range = moe::EpRange{1, effort(20) * 6}});
  }
}

TEST_P(PermuteWithEpGradShapes, TopK) {
  for (const int64_t top_k : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 31, 64, 512, 513, 700}) {
    for (const int64_t h : {3, 33}) {
      expect_matches_oracle({.dtype = GetParam(),
                             .probs_dtype = GetParam(),
                             .num_tokens = 3,
                             .top_k = top_k,
                             .hidden_size = h});
      expect_matches_oracle({.dtype = GetParam(),
                             .probs_dtype = GetParam(),
                             .num_tokens = 3,
                             .top_k = top_k,
                             .hidden_size = h,
                             .ep_range = moe::EpRange{top_k / 2, top_k + top_k / 2}});
      if (HasFailure()) return;
    }
  }
}

TEST_P(PermuteWithEpGradShapes, ManyTokensOnAllThreads) {
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

INSTANTIATE_TEST_SUITE_P(DTypes, PermuteWithEpGradShapes, testing::ValuesIn(kFloatDTypes),
                         dtype_param_name);

TEST(PermuteWithEpGradDTypes, EveryAllowedCombination) {
  for (const DType dtype : kFloatDTypes) {
    for (const DType probs : kFloatDTypes) {
      if ((dtype == DType::kF64) != (probs == DType::kF64)) continue;
      for (const DType index : {DType::kI32, DType::kI64}) {
        const GradCase c{.dtype = dtype, .index_dtype = index, .probs_dtype = probs};
        expect_matches_oracle(c);
        GradCase window = c;
        window.ep_range = moe::EpRange{4, 11};
        expect_matches_oracle(window);
      }
    }
  }
}

TEST(PermuteWithEpGradRouting, RealRoutings) {
  constexpr int64_t kTokens = 64, kTopK = 4, kExperts = 32, kRanks = 4;
  for (const auto& experts : {ref::uniform_routing(kTokens, kTopK, kExperts, 5),
                              ref::zipf_routing(kTokens, kTopK, kExperts, 6),
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
