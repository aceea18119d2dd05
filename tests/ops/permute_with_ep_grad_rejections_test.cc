// Every rule of the contract about shapes, dtypes, strides and windows, broken one at a time.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <vector>

#include "ops/rejection.h"

namespace test {
namespace {

using moe::DType;
using moe::EpRange;
using moe::TensorDesc;
using Args = moe::PermuteWithEpGrad::Args;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

struct Rejection {
  const char* argument;
  std::string problem;
  std::function<void(Args&)> break_it;
};

void expect_all(const std::vector<Rejection>& table) {
  for (const Rejection& row : table) {
    Args args = sample_args();
    row.break_it(args);
    expect_rejected(row.argument, row.problem, [&] { moe::PermuteWithEpGrad::plan(args); });
  }
}

TEST(PermuteWithEpGradRejections, TheCallThatIsBrokenIsValid) {
  EXPECT_NO_THROW(moe::PermuteWithEpGrad::plan(sample_args()));
}

TEST(PermuteWithEpGradRejections, DTypes) {
  const char* floats = "float32, float16, bfloat16, float64";
  expect_all({
      {"permuted_tokens_grad", std::string("dtype int32, but needs one of ") + floats,
       [](Args& a) { a.permuted_tokens_grad.dtype = DType::kI32; }},
      {"permuted_tokens_grad", std::string("dtype int64, but needs one of ") + floats,
       [](Args& a) { a.permuted_tokens_grad.dtype = DType::kI64; }},
      {"permuted_probs_grad", std::string("dtype int32, but needs one of ") + floats,
       [](Args& a) { a.permuted_probs_grad->dtype = DType::kI32; }},
      {"sorted_indices", "dtype float32, but needs one of int32, int64",
       [](Args& a) { a.sorted_indices.dtype = DType::kF32; }},
      {"sorted_indices", "dtype float64, but needs one of int32, int64",
       [](Args& a) { a.sorted_indices.dtype = DType::kF64; }},
      {"tokens_grad", "dtype bfloat16, but needs float32, the dtype of permuted_tokens_grad",
       [](Args& a) { a.tokens_grad.dtype = DType::kBF16; }},
      {"tokens_grad", "dtype int32, but needs float32, the dtype of permuted_tokens_grad",
       [](Args& a) { a.tokens_grad.dtype = DType::kI32; }},
      {"probs_grad", "dtype float16, but needs float32, the dtype of permuted_probs_grad",
       [](Args& a) { a.probs_grad->dtype = DType::kF16; }},
  });
}

TEST(PermuteWithEpGradRejections, Float64GoesWithFloat64) {
  for (const DType narrow : {DType::kF32, DType::kF16, DType::kBF16}) {
    const std::string name = moe::dtype_name(narrow);
    expect_all({
        {"permuted_probs_grad",
         "dtype float64 beside " + name +
             " permuted_tokens_grad, but float64 goes with float64 only",
         [&](Args& a) {
           a.permuted_tokens_grad.dtype = a.tokens_grad.dtype = narrow;
           a.permuted_probs_grad->dtype = a.probs_grad->dtype = DType::kF64;
         }},
        {"permuted_probs_grad",
         "dtype " + name +
             " beside float64 permuted_tokens_grad, but float64 goes with float64 only",
         [&](Args& a) {
           a.permuted_tokens_grad.dtype = a.tokens_grad.dtype = DType::kF64;
           a.permuted_probs_grad->dtype = a.probs_grad->dtype = narrow;
         }},
    });
  }
}

TEST(PermuteWithEpGradRejections, Ranks) {
  const auto f32 = [](std::initializer_list<int64_t> shape) {
    return TensorDesc::contiguous(DType::kF32, shape);
  };
  expect_all({
      {"permuted_tokens_grad", "0 dimensions, but needs 2: [rows, hidden_size]",
       [](Args& a) { a.permuted_tokens_grad = {}; }},
      {"permuted_tokens_grad", "1 dimensions, but needs 2: [rows, hidden_size]",
       [&](Args& a) { a.permuted_tokens_grad = f32({8}); }},
      {"permuted_tokens_grad", "3 dimensions, but needs 2: [rows, hidden_size]",
       [&](Args& a) { a.permuted_tokens_grad = f32({4, 2, 1}); }},
      {"permuted_tokens_grad", "9 dimensions, but needs 2: [rows, hidden_size]",
       [&](Args& a) { a.permuted_tokens_grad = f32({4, 2, 1, 1, 1, 1, 1, 1, 1}); }},
      {"permuted_tokens_grad", "-1 dimensions, but needs 2: [rows, hidden_size]",
       [](Args& a) { a.permuted_tokens_grad.num_dims = -1; }},
      {"sorted_indices", "2 dimensions, but needs 1: [num_tokens * top_k]",
       [](Args& a) { a.sorted_indices = TensorDesc::contiguous(DType::kI32, {3, 2}); }},
      {"sorted_indices", "0 dimensions, but needs 1: [num_tokens * top_k]",
       [](Args& a) { a.sorted_indices = TensorDesc::contiguous(DType::kI32, {}); }},
      {"permuted_probs_grad", "2 dimensions, but needs 1: [rows]",
       [&](Args& a) { a.permuted_probs_grad = f32({4, 1}); }},
      {"tokens_grad", "1 dimensions, but needs 2: [num_tokens, hidden_size]",
       [&](Args& a) { a.tokens_grad = f32({6}); }},
      {"tokens_grad", "0 dimensions, but needs 2: [num_tokens, hidden_size]",
       [](Args& a) { a.tokens_grad = {}; }},
      {"probs_grad", "1 dimensions, but needs 2: [num_tokens, top_k]",
       [&](Args& a) { a.probs_grad = f32({6}); }},
  });
}

TEST(PermuteWithEpGradRejections, ShapesOfOutputs) {
  const auto tokens = [](int64_t t, int64_t h) {
    return [=](Args& a) { a.tokens_grad = TensorDesc::contiguous(DType::kF32, {t, h}); };
  };
  const auto probs = [](int64_t t, int64_t k) {
    return [=](Args& a) { a.probs_grad = TensorDesc::contiguous(DType::kF32, {t, k}); };
  };
  const std::string want_tokens = ", but needs [3, 2]: [num_tokens, hidden_size]";
  const std::string want_probs = ", but needs [3, 2]: [num_tokens, top_k]";
  expect_all({
      {"tokens_grad", "shape [2, 2]" + want_tokens, tokens(2, 2)},
      {"tokens_grad", "shape [4, 2]" + want_tokens, tokens(4, 2)},
      {"tokens_grad", "shape [3, 1]" + want_tokens, tokens(3, 1)},
      {"tokens_grad", "shape [3, 3]" + want_tokens, tokens(3, 3)},
      {"tokens_grad", "shape [2, 3]" + want_tokens, tokens(2, 3)},
      {"tokens_grad", "shape [0, 2]" + want_tokens, tokens(0, 2)},
      {"probs_grad", "shape [2, 3]" + want_probs, probs(2, 3)},
      {"probs_grad", "shape [3, 3]" + want_probs, probs(3, 3)},
      {"probs_grad", "shape [6, 1]" + want_probs, probs(6, 1)},
  });
}

TEST(PermuteWithEpGradRejections, OutputsAreContiguous) {
  const auto layout = [](std::initializer_list<int64_t> strides, int64_t offset = 0) {
    return TensorDesc::strided(DType::kF32, {3, 2}, strides, offset);
  };
  const auto problem = [](const char* strides) {
    return std::string("strides ") + strides +
           " for shape [3, 2], but an output must be contiguous";
  };
  expect_all({
      {"tokens_grad", problem("[3, 1]"), [&](Args& a) { a.tokens_grad = layout({3, 1}); }},
      {"tokens_grad", problem("[1, 3]"), [&](Args& a) { a.tokens_grad = layout({1, 3}); }},
      {"tokens_grad", problem("[0, 1]"), [&](Args& a) { a.tokens_grad = layout({0, 1}); }},
      {"tokens_grad", problem("[2, 0]"), [&](Args& a) { a.tokens_grad = layout({2, 0}); }},
      {"probs_grad", problem("[4, 2]"), [&](Args& a) { a.probs_grad = layout({4, 2}); }},
      {"probs_grad", problem("[1, 1]"), [&](Args& a) { a.probs_grad = layout({1, 1}); }},
  });
  Args offset = sample_args();
  offset.tokens_grad = layout({2, 1}, 7);
  EXPECT_NO_THROW(moe::PermuteWithEpGrad::plan(offset));
}

TEST(PermuteWithEpGradRejections, TopK) {
  expect_all({
      {"top_k", "0, but needs at least 1", [](Args& a) { a.top_k = 0; }},
      {"top_k", "-2, but needs at least 1", [](Args& a) { a.top_k = -2; }},
      {"top_k", "-9223372036854775808, but needs at least 1", [](Args& a) { a.top_k = kMin; }},
      {"sorted_indices", "6 slots, but needs a multiple of top_k 4", [](Args& a) { a.top_k = 4; }},
      {"sorted_indices", "6 slots, but needs a multiple of top_k 12",
       [](Args& a) { a.top_k = 12; }},
      {"sorted_indices", "6 slots, but needs a multiple of top_k 9223372036854775807",
       [](Args& a) { a.top_k = kMax; }},
      {"sorted_indices", "5 slots, but needs a multiple of top_k 2",
       [](Args& a) { a.sorted_indices.shape[0] = 5; }},
  });
}

TEST(PermuteWithEpGradRejections, Ranges) {
  const auto range = [](int64_t begin, int64_t end) {
    return [=](Args& a) { a.ep_range = EpRange{begin, end}; };
  };
  const std::string want = ", but needs 0 <= begin <= end <= 6, the number of slots";
  expect_all({
      {"ep_range", "[-1, 3)" + want, range(-1, 3)},
      {"ep_range", "[3, 2)" + want, range(3, 2)},
      {"ep_range", "[3, 7)" + want, range(3, 7)},
      {"ep_range", "[7, 7)" + want, range(7, 7)},
      {"ep_range", "[-2, -1)" + want, range(-2, -1)},
      {"ep_range", "[-9223372036854775808, 9223372036854775807)" + want, range(kMin, kMax)},
      {"ep_range", "[9223372036854775807, -9223372036854775808)" + want, range(kMax, kMin)},
      {"ep_range", "[0, 9223372036854775807)" + want, range(0, kMax)},
  });
  for (const EpRange edge : {EpRange{0, 0}, EpRange{6, 6}, EpRange{2, 6}, EpRange{0, 4}}) {
    Args args = sample_args();
    args.ep_range = edge;
    EXPECT_NO_THROW(moe::PermuteWithEpGrad::plan(args)) << edge.begin << " " << edge.end;
  }
}

TEST(PermuteWithEpGradRejections, Rows) {
  const auto tokens = [](int64_t rows) {
    return [=](Args& a) { a.permuted_tokens_grad.shape[0] = rows; };
  };
  const auto probs = [](int64_t rows) {
    return [=](Args& a) { a.permuted_probs_grad->shape[0] = rows; };
  };
  const std::string want = " rows, but the range [1, 5) needs at least 4";
  expect_all({
      {"permuted_tokens_grad", "3" + want, tokens(3)},
      {"permuted_tokens_grad", "0" + want, tokens(0)},
      {"permuted_probs_grad", "3" + want, probs(3)},
      {"permuted_probs_grad", "0" + want, probs(0)},
  });
  // Without a range the window is the tokens' rows, and probs need as many.
  expect_all(
      {{"permuted_probs_grad", "3 rows, but the range [0, 4) needs at least 4", [&](Args& a) {
          a.ep_range.reset();
          probs(3)(a);
        }}});
}

TEST(PermuteWithEpGradRejections, ProbsComeInPairs) {
  Args no_output = sample_args();
  no_output.probs_grad.reset();
  expect_rejected<moe::NullArgument>("probs_grad",
                                     "missing, but needed where permuted_probs_grad is given",
                                     [&] { moe::PermuteWithEpGrad::plan(no_output); });
  expect_all({{"probs_grad", "given, but needs permuted_probs_grad, which is not",
               [](Args& a) { a.permuted_probs_grad.reset(); }}});
}

TEST(PermuteWithEpGradRejections, NegativeSizes) {
  expect_all({
      {"permuted_tokens_grad", "shape [-4, 2], but sizes must be >= 0",
       [](Args& a) { a.permuted_tokens_grad.shape[0] = -4; }},
      {"permuted_tokens_grad", "shape [4, -2], but sizes must be >= 0",
       [](Args& a) { a.permuted_tokens_grad.shape[1] = -2; }},
      {"sorted_indices", "shape [-6], but sizes must be >= 0",
       [](Args& a) { a.sorted_indices.shape[0] = -6; }},
      {"permuted_probs_grad", "shape [-9223372036854775808], but sizes must be >= 0",
       [](Args& a) { a.permuted_probs_grad->shape[0] = kMin; }},
      {"tokens_grad", "shape [-3, 2], but sizes must be >= 0",
       [](Args& a) { a.tokens_grad.shape[0] = -3; }},
      {"probs_grad", "shape [3, -2], but sizes must be >= 0",
       [](Args& a) { a.probs_grad->shape[1] = -2; }},
  });
}

TEST(PermuteWithEpGradRejections, NegativeStridesAndOffsets) {
  expect_all({
      {"permuted_tokens_grad", "strides [-2, 1], but must be >= 0",
       [](Args& a) { a.permuted_tokens_grad.strides[0] = -2; }},
      {"permuted_tokens_grad", "strides [2, -1], but must be >= 0",
       [](Args& a) { a.permuted_tokens_grad.strides[1] = -1; }},
      {"sorted_indices", "strides [-1], but must be >= 0",
       [](Args& a) { a.sorted_indices.strides[0] = -1; }},
      {"permuted_probs_grad", "strides [-9223372036854775808], but must be >= 0",
       [](Args& a) { a.permuted_probs_grad->strides[0] = kMin; }},
      {"tokens_grad", "strides [-2, 1], but must be >= 0",
       [](Args& a) { a.tokens_grad.strides[0] = -2; }},
      {"permuted_tokens_grad", "offset -1, but must be >= 0",
       [](Args& a) { a.permuted_tokens_grad.offset = -1; }},
      {"sorted_indices", "offset -9223372036854775808, but must be >= 0",
       [](Args& a) { a.sorted_indices.offset = kMin; }},
      {"permuted_probs_grad", "offset -5, but must be >= 0",
       [](Args& a) { a.permuted_probs_grad->offset = -5; }},
      {"tokens_grad", "offset -1, but must be >= 0", [](Args& a) { a.tokens_grad.offset = -1; }},
      {"probs_grad", "offset -1, but must be >= 0", [](Args& a) { a.probs_grad->offset = -1; }},
  });
}

}  // namespace
}  // namespace test
