// Where tensors lie: strides of every kind, offsets, any alignment.
#include "ops/permute_case.h"

namespace test {
namespace {

using moe::DType;

TEST(PermuteLayouts, StridesOfTokens) {
  for (const int64_t stride : {0, 7, 8, 64, 1000}) {
    expect_matches_oracle({.tokens = {.stride = stride, .offset = 3}});
  }
  for (const int64_t inner : {0, 2, 5}) {
    expect_matches_oracle({.dtype = DType::kF16, .tokens = {.stride = 50, .inner_stride = inner}});
  }
  // Column-major.
  expect_matches_oracle({.hidden_size = 9, .tokens = {.stride = 1, .inner_stride = 5}});
}

TEST(PermuteLayouts, StridesOfIndicesAndProbs) {
  for (const Layout& layout :
       {Layout{.stride = 5}, Layout{.stride = 1, .inner_stride = 5}, Layout{.stride = 0},
        Layout{.stride = 9, .inner_stride = 2, .offset = 4},
        Layout{.stride = 4, .inner_stride = 0}}) {
    for (const DType index : {DType::kI32, DType::kI64}) {
      // Repeated memory holds one expert for many slots: whichever was stored last.
      std::vector<int64_t> experts(15);
      for (int64_t i = 0; i < 15; ++i) {
        experts[static_cast<size_t>(i)] =
            (layout.stride ? i / 3 * 2 : 0) + (layout.inner_stride ? i % 3 : 0);
      }
      expect_matches_oracle({.index_dtype = index,
                             .probs_dtype = DType::kF32,
                             .probs = layout,
                             .index = layout,
                             .experts = experts});
    }
  }
  expect_matches_oracle({.probs_dtype = DType::kF16,
                         .num_tokens = 9,
                         .top_k = 1,
                         .flat = true,
                         .probs = {.stride = 3, .offset = 1},
                         .index = {.stride = 2, .offset = 5}});
}

// A dimension of one element is never stepped over.
TEST(PermuteLayouts, StridesOfSingleElementsAreIgnored) {
  PermuteProblem problem(
      {.probs_dtype = DType::kF32, .num_tokens = 1, .top_k = 1, .hidden_size = 1});
  moe::PermuteWithEp::Args args = problem.args();
  for (moe::TensorDesc* desc : {&args.tokens, &args.indices, &*args.probs}) {
    desc->strides = {-100, -100};
  }
  float token = 2, prob = 3, row = 0, row_prob = 0;
  int32_t expert = 0, place = 7, workspace[64];
  moe::PermuteWithEp::plan(args)
      .bind({&token, &expert, &prob, &row, &place, &row_prob, nullptr})
      .run(workspace);
  EXPECT_EQ(row, 2);
  EXPECT_EQ(row_prob, 3);
  EXPECT_EQ(place, 0);
}

TEST(PermuteLayouts, AnyAlignment) {
  for (const size_t slack : {1, 2, 3, 6, 13}) {
    for (const int64_t h : {5, 40, 333}) {
      expect_matches_oracle({.dtype = DType::kBF16,
                             .probs_dtype = DType::kF32,
                             .hidden_size = h,
                             .tokens = {.slack_bytes = slack},
                             .probs = {.slack_bytes = slack},
                             .index = {.slack_bytes = slack},
                             .out_slack_bytes = slack});
    }
  }
}

}  // namespace
}  // namespace test
