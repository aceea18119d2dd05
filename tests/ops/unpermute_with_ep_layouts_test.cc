// Where tensors lie: any strides, offsets and alignment of inputs, any alignment of outputs.
#include <gtest/gtest.h>

#include "ops/few_tokens.h"
#include "ops/unpermute_case.h"
#include "support/effort.h"

namespace test {
namespace {

using moe::DType;

class UnpermuteWithEpLayouts : public testing::TestWithParam<DType> {
 protected:
  // Widths on both sides of the vector sizes.
  static constexpr int64_t kWidths[] = {1, 2, 7, 16, 33, 67, 300};
};

TEST_P(UnpermuteWithEpLayouts, AnyAddress) {
  for (size_t slack = 0; slack < 17; ++slack) {
    for (const int64_t h : kWidths) {
      expect_matches_oracle({.dtype = GetParam(),
                             .probs_dtype = GetParam(),
                             .hidden_size = h,
                             .ep_range = moe::EpRange{3, 12},
                             .permuted = {.slack_bytes = slack},
                             .grad = {.slack_bytes = slack + 5},
                             .probs = {.slack_bytes = slack + 1},
                             .index = {.slack_bytes = slack + 3},
                             .out_slack_bytes = slack + 2});
      if (HasFailure()) return;
    }
  }
}

TEST_P(UnpermuteWithEpLayouts, OutputsOfOtherAlignmentThanInputs) {
  for (size_t slack = 0; slack < 64; slack += kSanitized ? 9 : 1) {
    expect_matches_oracle({.dtype = GetParam(),
                           .probs_dtype = GetParam(),
                           .top_k = 2,
                           .hidden_size = 131,
                           .out_slack_bytes = slack});
  }
}

TEST_P(UnpermuteWithEpLayouts, RowStrides) {
  for (const int64_t h : kWidths) {
    for (const int64_t stride : {int64_t{0}, int64_t{1}, h + 1, h + 2, 2 * h, 4096 + h}) {
      expect_matches_oracle({.dtype = GetParam(),
                             .probs_dtype = GetParam(),
                             .hidden_size = h,
                             .ep_range = moe::EpRange{2, 13},
                             .permuted = {.stride = stride, .offset = stride % 5},
                             .grad = {.stride = (stride + 3) % 5000, .offset = stride % 3}});
      if (HasFailure()) return;
    }
  }
}

TEST_P(UnpermuteWithEpLayouts, InnerStrides) {
  for (const int64_t h : kWidths) {
    for (const int64_t inner : {0, 2, 3, 64}) {
      UnpermuteCase c{.dtype = GetParam(),
                      .probs_dtype = GetParam(),
                      .hidden_size = h,
                      .ep_range = moe::EpRange{2, 13},
                      .permuted = {.inner_stride = inner, .offset = 3}};
      expect_matches_oracle(c);
      c.grad = {.inner_stride = inner + 1, .offset = 2};
      expect_matches_oracle(c);
      c.permuted = {};
      expect_matches_oracle(c);
      if (HasFailure()) return;
    }
  }
}

TEST_P(UnpermuteWithEpLayouts, Transposed) {
  for (const int64_t h : kWidths) {
    for (const int64_t top_k : {1, 4}) {
      expect_matches_oracle({.dtype = GetParam(),
                             .probs_dtype = GetParam(),
                             .top_k = top_k,
                             .hidden_size = h,
                             .permuted = {.stride = 1, .inner_stride = 5 * top_k},
                             .grad = {.stride = 1, .inner_stride = 5},
                             .probs = {.stride = 1, .inner_stride = 5}});
      if (HasFailure()) return;
    }
  }
}

TEST_P(UnpermuteWithEpLayouts, AllStridesZero) {
  expect_matches_oracle({.dtype = GetParam(),
                         .probs_dtype = GetParam(),
                         .hidden_size = 40,
                         .permuted = {.stride = 0, .inner_stride = 0},
                         .grad = {.stride = 0, .inner_stride = 0},
                         .probs = {.stride = 0, .inner_stride = 0},
                         .zero_probs = 0});
}

TEST_P(UnpermuteWithEpLayouts, LongRowsWithInnerStride) {
  for (const int64_t h : {1023, 7168}) {
    expect_matches_oracle({.dtype = GetParam(),
                           .probs_dtype = GetParam(),
                           .num_tokens = 9,
                           .top_k = 5,
                           .hidden_size = h,
                           .ep_range = moe::EpRange{5, 40},
                           .permuted = {.inner_stride = 2, .offset = 1},
                           .grad = {.inner_stride = 2},
                           .num_threads = 3});
  }
}

TEST_P(UnpermuteWithEpLayouts, IndicesAndProbs) {
  for (const DType index : {DType::kI32, DType::kI64}) {
    for (const int64_t stride : {0, 1, 3, 5}) {
      for (const int64_t inner : {0, 1, 4}) {
        for (const std::optional<moe::EpRange> range :
             {std::optional<moe::EpRange>(), std::optional(moe::EpRange{1, 12})}) {
          expect_both_match(
              UnpermuteCase{.dtype = GetParam(),
                            .index_dtype = index,
                            .probs_dtype = GetParam(),
                            .ep_range = range,
                            .probs = {.stride = stride, .inner_stride = inner, .offset = 6},
                            .index = {.stride = 1 + stride % 4, .offset = inner * 2}});
        }
      }
    }
  }
}

// Each tensor has strides and an offset of its own, none equal to another's.
TEST_P(UnpermuteWithEpLayouts, AllDifferent) {
  expect_matches_oracle({.dtype = GetParam(),
                         .index_dtype = DType::kI64,
                         .probs_dtype = GetParam(),
                         .num_tokens = 13,
                         .top_k = 4,
                         .hidden_size = 21,
                         .ep_range = moe::EpRange{7, 45},
                         .rows = 41,
                         .permuted = {.stride = 50, .inner_stride = 2, .offset = 11},
                         .grad = {.stride = 90, .inner_stride = 4, .offset = 13},
                         .probs = {.stride = 31, .inner_stride = 7, .offset = 5},
                         .index = {.stride = 3, .offset = 2}});
}

// What a stride means for a dimension of one element is nothing.
TEST_P(UnpermuteWithEpLayouts, StridesOfSingleElementsAreIgnored) {
  const UnpermuteData data({.dtype = GetParam(),
                            .probs_dtype = GetParam(),
                            .num_tokens = 1,
                            .top_k = 1,
                            .hidden_size = 1,
                            .zero_probs = 0});
  const UnpermuteOutputs want = data.expected();
  for (const int64_t stride : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    auto args = data.args();
    auto grad = data.grad_args();
    for (moe::TensorDesc* desc :
         {&args.permuted_tokens, &args.sorted_indices, &*args.probs, &args.out,
          &grad.unpermuted_tokens_grad, &grad.sorted_indices, &*grad.permuted_tokens, &*grad.probs,
          &grad.permuted_tokens_grad, &*grad.probs_grad}) {
      desc->strides = {stride, stride};
    }
    std::vector<std::byte> out(want.tokens.size()), rows(want.rows.size()), probs(out.size());
    std::vector<std::byte> workspace(64);
    auto pointers = data.inputs();
    pointers.out = out.data();
    moe::UnpermuteWithEp::plan(args).bind(pointers).run(workspace.data());
    expect_same_values("out", GetParam(), out, want.tokens);
    auto grad_pointers = data.grad_inputs();
    grad_pointers.permuted_tokens_grad = rows.data();
    grad_pointers.probs_grad = probs.data();
    moe::UnpermuteWithEpGrad::plan(grad).bind(grad_pointers).run(workspace.data());
    expect_same_values("permuted_tokens_grad", GetParam(), rows, want.rows);
    expect_same_values("probs_grad", GetParam(), probs, want.probs);
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, UnpermuteWithEpLayouts, testing::ValuesIn(kFloatDTypes),
                         dtype_param_name);

}  // namespace
}  // namespace test
