// Where tensors lie: any strides, offsets and alignment of inputs, any alignment of outputs.
#include <gtest/gtest.h>

#include "ops/few_tokens.h"
#include "ops/grad_case.h"
#include "support/effort.h"

namespace test {
namespace {

using moe::DType;

class PermuteWithEpGradLayouts : public testing::TestWithParam<DType> {
 protected:
  // Widths on both sides of the vector sizes.
  static constexpr int64_t kWidths[] = {1, 2, 7, 16, 33, 67, 300};
};

TEST_P(PermuteWithEpGradLayouts, AnyAddress) {
  for (size_t slack = 0; slack < 17; ++slack) {
    for (const int64_t h : kWidths) {
      expect_matches_oracle({.dtype = GetParam(),
                             .probs_dtype = GetParam(),
                             .hidden_size = h,
                             .ep_range = moe::EpRange{3, 12},
                             .tokens = {.slack_bytes = slack},
                             .probs = {.slack_bytes = slack + 1},
                             .index = {.slack_bytes = slack + 3},
                             .out_slack_bytes = slack + 2});
      if (HasFailure()) return;
    }
  }
}

TEST_P(PermuteWithEpGradLayouts, OutputsOfOtherAlignmentThanInputs) {
  for (size_t slack = 0; slack < 64; slack += kSanitized ? 9 : 1) {
    expect_matches_oracle({.dtype = GetParam(),
                           .probs_dtype = GetParam(),
                           .top_k = 2,
                           .hidden_size = 131,
                           .out_slack_bytes = slack});
  }
}

TEST_P(PermuteWithEpGradLayouts, RowStrides) {
  for (const int64_t h : kWidths) {
    for (const int64_t stride : {int64_t{0}, int64_t{1}, h + 1, h + 2, 2 * h, 4096 + h}) {
      expect_matches_oracle({.dtype = GetParam(),
                             .hidden_size = h,
                             .ep_range = moe::EpRange{2, 13},
                             .tokens = {.stride = stride, .offset = stride % 5}});
      if (HasFailure()) return;
    }
  }
}

TEST_P(PermuteWithEpGradLayouts, InnerStrides) {
  for (const int64_t h : kWidths) {
    for (const int64_t inner : {0, 2, 3, 64}) {
      expect_matches_oracle({.dtype = GetParam(),
                             .hidden_size = h,
                             .ep_range = moe::EpRange{2, 13},
                             .tokens = {.inner_stride = inner, .offset = 3}});
      if (HasFailure()) return;
    }
  }
}

TEST_P(PermuteWithEpGradLayouts, Transposed) {
  for (const int64_t h : kWidths) {
    for (const int64_t top_k : {1, 4}) {
      expect_matches_oracle({.dtype = GetParam(),
                             .top_k = top_k,
                             .hidden_size = h,
                             .tokens = {.stride = 1, .inner_stride = 5 * top_k}});
      if (HasFailure()) return;
    }
  }
}

TEST_P(PermuteWithEpGradLayouts, BothStridesZero) {
  expect_matches_oracle(
      {.dtype = GetParam(), .hidden_size = 40, .tokens = {.stride = 0, .inner_stride = 0}});
}

TEST_P(PermuteWithEpGradLayouts, LongRowsWithInnerStride) {
  for (const int64_t h : {1023, 7168}) {
    expect_matches_oracle({.dtype = GetParam(),
                           .num_tokens = 9,
                           .top_k = 5,
                           .hidden_size = h,
                           .ep_range = moe::EpRange{5, 40},
                           .tokens = {.inner_stride = 2, .offset = 1},
                           .num_threads = 3});
  }
}

TEST_P(PermuteWithEpGradLayouts, IndicesAndProbs) {
  for (const DType index : {DType::kI32, DType::kI64}) {
    for (const int64_t stride : {0, 1, 2, 5}) {
      for (const int64_t offset : {0, 1, 6}) {
        for (const std::optional<moe::EpRange> range :
             {std::optional<moe::EpRange>(), std::optional(moe::EpRange{1, 12})}) {
          expect_both_match(GradCase{.dtype = GetParam(),
                                     .index_dtype = index,
                                     .probs_dtype = GetParam(),
                                     .ep_range = range,
                                     .probs = {.stride = stride, .offset = offset},
                                     .index = {.stride = (stride + 1) % 4, .offset = offset * 2}});
        }
      }
    }
  }
}

// Each tensor has a stride and offset of its own, none equal to another's.
TEST_P(PermuteWithEpGradLayouts, AllDifferent) {
  expect_matches_oracle({.dtype = GetParam(),
                         .index_dtype = DType::kI64,
                         .probs_dtype = GetParam(),
                         .num_tokens = 13,
                         .top_k = 4,
                         .hidden_size = 21,
                         .ep_range = moe::EpRange{7, 45},
                         .tokens = {.stride = 50, .inner_stride = 2, .offset = 11},
                         .probs = {.stride = 7, .offset = 5},
                         .index = {.stride = 3, .offset = 2}});
}

// What a stride means for a dimension of one element is nothing.
TEST_P(PermuteWithEpGradLayouts, StridesOfSingleElementsAreIgnored) {
  const GradProblem problem({.dtype = GetParam(),
                             .probs_dtype = GetParam(),
                             .num_tokens = 1,
                             .top_k = 1,
                             .hidden_size = 1});
  moe::PermuteWithEpGrad::Args args = problem.args();
  for (const int64_t stride : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    args.permuted_tokens_grad.strides = {stride, stride};
    args.sorted_indices.strides = {stride};
    args.permuted_probs_grad->strides = {stride};
    args.tokens_grad.strides = {stride, stride};
    args.probs_grad->strides = {stride, stride};
    std::vector<std::byte> tokens(8), probs(8);
    auto pointers = problem.inputs();
    pointers.tokens_grad = tokens.data();
    pointers.probs_grad = probs.data();
    moe::PermuteWithEpGrad::plan(args).bind(pointers).run();
    tokens.resize(static_cast<size_t>(moe::dtype_bytes(GetParam())));
    expect_same_values("tokens_grad", GetParam(), tokens, problem.expected().tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, PermuteWithEpGradLayouts, testing::ValuesIn(kFloatDTypes),
                         dtype_param_name);

}  // namespace
}  // namespace test
