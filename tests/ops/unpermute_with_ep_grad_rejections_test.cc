// Every rule of UnpermuteWithEpGrad's contract about shapes, dtypes, strides, windows and
// addresses, broken one at a time.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <vector>

#include "ops/rejection.h"

namespace test {
namespace {

using moe::DType;
using moe::EpRange;
using moe::TensorDesc;
using moe::UnpermuteWithEpGrad;
using Args = UnpermuteWithEpGrad::Args;
using Pointers = UnpermuteWithEpGrad::Pointers;

TensorDesc f32(std::initializer_list<int64_t> shape) {
  return TensorDesc::contiguous(DType::kF32, shape);
}

// K = 2, range [1, 5), 3 tokens of 2 elements, a row of padding.
Args valid() {
  return {.unpermuted_tokens_grad = f32({3, 2}),
          .sorted_indices = TensorDesc::contiguous(DType::kI32, {6}),
          .permuted_tokens = f32({5, 2}),
          .probs = f32({3, 2}),
          .top_k = 2,
          .ep_range = EpRange{1, 5},
          .permuted_tokens_grad = f32({5, 2}),
          .probs_grad = f32({3, 2})};
}

struct Rejection {
  const char* argument;
  std::string problem;
  std::function<void(Args&)> break_it;
};

void expect_all(const std::vector<Rejection>& table) {
  for (const Rejection& row : table) {
    Args args = valid();
    row.break_it(args);
    expect_rejected(row.argument, row.problem, [&] { UnpermuteWithEpGrad::plan(args); });
  }
}

void expect_valid(const std::function<void(Args&)>& change) {
  Args args = valid();
  change(args);
  EXPECT_NO_THROW(UnpermuteWithEpGrad::plan(args));
}

const std::string kFloats = ", but needs one of float32, float16, bfloat16, float64";

TEST(UnpermuteWithEpGradRejections, WhatMayBeAbsent) {
  expect_valid([](Args&) {});
  expect_valid([](Args& a) { a.probs_grad.reset(); });
  expect_valid([](Args& a) { a.probs_grad.reset(), a.permuted_tokens.reset(); });
  expect_valid([](Args& a) { a.probs_grad.reset(), a.probs.reset(); });
  expect_valid([](Args& a) {
    a.probs_grad.reset(), a.probs.reset(), a.permuted_tokens.reset(), a.ep_range.reset();
    a.permuted_tokens_grad = f32({40, 2});
  });
  expect_valid([](Args& a) { a.probs->dtype = a.probs_grad->dtype = DType::kBF16; });
}

TEST(UnpermuteWithEpGradRejections, DTypes) {
  expect_all({
      {"unpermuted_tokens_grad", "dtype int32" + kFloats,
       [](Args& a) { a.unpermuted_tokens_grad.dtype = DType::kI32; }},
      {"permuted_tokens", "dtype float16, but needs float32, the dtype of unpermuted_tokens_grad",
       [](Args& a) { a.permuted_tokens->dtype = DType::kF16; }},
      {"probs", "dtype int64" + kFloats, [](Args& a) { a.probs->dtype = DType::kI64; }},
      {"probs",
       "dtype float64 beside float32 unpermuted_tokens_grad, but float64 goes with float64 only",
       [](Args& a) { a.probs->dtype = DType::kF64; }},
      {"sorted_indices", "dtype float32, but needs one of int32, int64",
       [](Args& a) { a.sorted_indices.dtype = DType::kF32; }},
      {"permuted_tokens_grad",
       "dtype bfloat16, but needs float32, the dtype of unpermuted_tokens_grad",
       [](Args& a) { a.permuted_tokens_grad.dtype = DType::kBF16; }},
      {"probs_grad", "dtype float16, but needs float32, the dtype of probs",
       [](Args& a) { a.probs_grad->dtype = DType::kF16; }},
  });
}

TEST(UnpermuteWithEpGradRejections, RanksAndShapes) {
  expect_all({
      {"unpermuted_tokens_grad", "1 dimensions, but needs 2: [num_tokens, hidden_size]",
       [](Args& a) { a.unpermuted_tokens_grad = f32({6}); }},
      {"unpermuted_tokens_grad", "2 tokens, but needs 3: 6 slots of sorted_indices, top_k 2",
       [](Args& a) { a.unpermuted_tokens_grad = f32({2, 2}); }},
      {"permuted_tokens", "3 dimensions, but needs 2: [rows, hidden_size]",
       [](Args& a) { a.permuted_tokens = f32({5, 2, 1}); }},
      {"permuted_tokens", "hidden_size 3, but needs 2, that of unpermuted_tokens_grad",
       [](Args& a) { a.permuted_tokens = f32({5, 3}); }},
      {"sorted_indices", "2 dimensions, but needs 1: [num_tokens * top_k]",
       [](Args& a) { a.sorted_indices = TensorDesc::contiguous(DType::kI32, {3, 2}); }},
      {"probs", "shape [2, 2], but needs [3, 2]: [num_tokens, top_k]",
       [](Args& a) { a.probs = f32({2, 2}); }},
      {"permuted_tokens_grad", "1 dimensions, but needs 2: [rows, hidden_size]",
       [](Args& a) { a.permuted_tokens_grad = f32({10}); }},
      {"permuted_tokens_grad", "shape [5, 3], but needs [5, 2]: [rows, hidden_size]",
       [](Args& a) { a.permuted_tokens_grad = f32({5, 3}); }},
      // As many rows as permuted_tokens.
      {"permuted_tokens_grad", "shape [6, 2], but needs [5, 2]: [rows, hidden_size]",
       [](Args& a) { a.permuted_tokens_grad = f32({6, 2}); }},
      {"probs_grad", "shape [3, 1], but needs [3, 2]: [num_tokens, top_k]",
       [](Args& a) { a.probs_grad = f32({3, 1}); }},
  });
}

TEST(UnpermuteWithEpGradRejections, TopKRangesAndRows) {
  const std::string want = ", but needs 0 <= begin <= end <= 6, the number of slots";
  expect_all({
      {"top_k", "0, but needs at least 1", [](Args& a) { a.top_k = 0; }},
      {"sorted_indices", "72057594037927938 slots, but takes at most 2^56",
       [](Args& a) {
         a.sorted_indices.shape[0] = (int64_t{1} << 56) + 2;
         a.sorted_indices.strides[0] = 0;
       }},
      {"sorted_indices", "6 slots, but needs a multiple of top_k 4", [](Args& a) { a.top_k = 4; }},
      {"probs", "shape [3, 2], but needs [2, 3]: [num_tokens, top_k]",
       [](Args& a) { a.top_k = 3; }},
      {"ep_range", "[-1, 3)" + want, [](Args& a) { a.ep_range = EpRange{-1, 3}; }},
      {"ep_range", "[3, 2)" + want, [](Args& a) { a.ep_range = EpRange{3, 2}; }},
      {"ep_range", "[3, 7)" + want, [](Args& a) { a.ep_range = EpRange{3, 7}; }},
      {"permuted_tokens", "3 rows, but the range [1, 5) needs at least 4",
       [](Args& a) { a.permuted_tokens->shape[0] = 3; }},
      {"permuted_tokens_grad", "3 rows, but the range [1, 5) needs at least 4",
       [](Args& a) {
         a.permuted_tokens.reset(), a.probs_grad.reset();
         a.permuted_tokens_grad = f32({3, 2});
       }},
  });
}

TEST(UnpermuteWithEpGradRejections, LayoutsAndWhatGoesTogether) {
  expect_all({
      {"unpermuted_tokens_grad", "strides [-2, 1], but must be >= 0",
       [](Args& a) { a.unpermuted_tokens_grad.strides[0] = -2; }},
      {"permuted_tokens", "strides [2, -1], but must be >= 0",
       [](Args& a) { a.permuted_tokens->strides[1] = -1; }},
      {"probs", "offset -3, but must be >= 0", [](Args& a) { a.probs->offset = -3; }},
      {"permuted_tokens_grad", "strides [1, 5] for shape [5, 2], but an output must be contiguous",
       [](Args& a) { a.permuted_tokens_grad.strides = {1, 5}; }},
      {"probs_grad", "strides [4, 2] for shape [3, 2], but an output must be contiguous",
       [](Args& a) { a.probs_grad->strides = {4, 2}; }},
      {"probs_grad", "given, but needs probs, which is not", [](Args& a) { a.probs.reset(); }},
  });
  Args args = valid();
  args.permuted_tokens.reset();
  expect_rejected<moe::NullArgument>("permuted_tokens",
                                     "missing, but needed where probs_grad is given",
                                     [&] { UnpermuteWithEpGrad::plan(args); });
}

TEST(UnpermuteWithEpGradAddresses, NullAndOverlap) {
  const UnpermuteWithEpGrad plan = UnpermuteWithEpGrad::plan(valid());
  std::array<float, 96> memory{};
  float* at = memory.data();
  const Pointers good{at, at + 16, at + 32, at + 48, at + 64, at + 80};
  EXPECT_NO_THROW(plan.bind(good));
  const auto null = [&](const char* name, const char* shape, auto member) {
    auto broken = good;
    broken.*member = nullptr;
    expect_rejected<moe::NullArgument>(
        name, std::string("null, but needs the address of a tensor of shape ") + shape,
        [&] { plan.bind(broken); });
  };
  null("unpermuted_tokens_grad", "[3, 2]", &Pointers::unpermuted_tokens_grad);
  null("sorted_indices", "[6]", &Pointers::sorted_indices);
  null("permuted_tokens", "[5, 2]", &Pointers::permuted_tokens);
  null("probs", "[3, 2]", &Pointers::probs);
  null("permuted_tokens_grad", "[5, 2]", &Pointers::permuted_tokens_grad);
  null("probs_grad", "[3, 2]", &Pointers::probs_grad);

  const auto overlap = [&](const char* output, auto member, const char* other, float* address,
                           int bytes) {
    auto broken = good;
    broken.*member = address;
    expect_rejected(output,
                    std::string("overlaps ") + other + " by " + std::to_string(bytes) +
                        " bytes, but an output must not share memory with any other tensor",
                    [&] { plan.bind(broken); });
  };
  const char* rows = "permuted_tokens_grad";
  overlap(rows, &Pointers::permuted_tokens_grad, "unpermuted_tokens_grad", at + 5, 4);
  overlap(rows, &Pointers::permuted_tokens_grad, "sorted_indices", at + 20, 8);
  overlap(rows, &Pointers::permuted_tokens_grad, "permuted_tokens", at + 32, 40);
  overlap(rows, &Pointers::permuted_tokens_grad, "probs", at + 53, 4);
  overlap("probs_grad", &Pointers::probs_grad, "permuted_tokens", at + 30, 16);
  overlap("probs_grad", &Pointers::probs_grad, "probs", at + 48, 24);
  overlap("probs_grad", &Pointers::probs_grad, rows, at + 72, 8);
}

}  // namespace
}  // namespace test
