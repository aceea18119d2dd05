// Sizes, strides and offsets near 2^63: rejected where a byte count or offset leaves 63 bits,
// accepted just below.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "ops/rejection.h"

namespace test {
namespace {

using moe::DType;
using moe::TensorDesc;
using Args = moe::PermuteWithEpGrad::Args;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
// A float32 tensor whose bytes just fit has this many elements.
constexpr int64_t kMostFloats = kMax / 4;

std::string too_large(const char* shape, const char* strides, const std::string& offset) {
  return std::string("shape ") + shape + " with strides " + strides + " and offset " + offset +
         ", but sizes and offsets in bytes must stay below 2^63";
}

void expect_too_large(const char* argument, const std::string& problem,
                      const std::function<void(Args&)>& break_it) {
  Args args = sample_args();
  break_it(args);
  expect_rejected(argument, problem, [&] { moe::PermuteWithEpGrad::plan(args); });
}

void expect_accepted(const std::function<void(Args&)>& change) {
  Args args = sample_args();
  change(args);
  EXPECT_NO_THROW(moe::PermuteWithEpGrad::plan(args));
}

TEST(PermuteWithEpGradOverflow, ByteCounts) {
  expect_too_large(
      "permuted_tokens_grad", too_large("[4611686018427387904, 2]", "[0, 1]", "0"), [](Args& a) {
        a.permuted_tokens_grad = TensorDesc::strided(DType::kF32, {1L << 62, 2}, {0, 1});
      });
  // The product of these wraps to a small number.
  expect_too_large("permuted_tokens_grad", too_large("[4294967296, 4294967298]", "[0, 0]", "0"),
                   [](Args& a) {
                     a.permuted_tokens_grad =
                         TensorDesc::strided(DType::kF32, {1L << 32, (1L << 32) + 2}, {0, 0});
                   });
  expect_too_large(
      "permuted_tokens_grad", too_large("[1152921504606846976, 2]", "[0, 0]", "0"), [](Args& a) {
        a.permuted_tokens_grad = TensorDesc::strided(DType::kF32, {1L << 60, 2}, {0, 0});
      });
  expect_too_large("sorted_indices", too_large("[9223372036854775806]", "[0]", "0"), [](Args& a) {
    a.sorted_indices = TensorDesc::strided(DType::kI64, {kMax - 1}, {0});
  });
  expect_too_large(
      "permuted_probs_grad", too_large("[2305843009213693952]", "[0]", "0"), [](Args& a) {
        a.permuted_probs_grad = TensorDesc::strided(DType::kF32, {kMostFloats + 1}, {0});
      });
  expect_accepted([](Args& a) {
    a.permuted_probs_grad = TensorDesc::strided(DType::kF32, {kMostFloats}, {0});
  });
}

TEST(PermuteWithEpGradOverflow, ByteCountsOfOutputs) {
  // Inputs that are small in memory may still ask for an output that does not exist.
  expect_too_large(
      "tokens_grad", too_large("[1099511627776, 1099511627776]", "[1099511627776, 1]", "0"),
      [](Args& a) {
        a.permuted_tokens_grad = TensorDesc::strided(DType::kF32, {4, 1L << 40}, {0, 0});
        a.sorted_indices = TensorDesc::strided(DType::kI32, {1L << 40}, {0});
        a.top_k = 1;
        a.tokens_grad = TensorDesc::contiguous(DType::kF32, {1L << 40, 1L << 40});
      });
}

TEST(PermuteWithEpGradOverflow, Strides) {
  expect_too_large("permuted_tokens_grad", too_large("[4, 2]", "[4611686018427387904, 1]", "0"),
                   [](Args& a) { a.permuted_tokens_grad.strides[0] = 1L << 62; });
  expect_too_large("permuted_tokens_grad", too_large("[4, 2]", "[2, 9223372036854775807]", "0"),
                   [](Args& a) { a.permuted_tokens_grad.strides[1] = kMax; });
  expect_too_large("sorted_indices", too_large("[6]", "[9223372036854775807]", "0"),
                   [](Args& a) { a.sorted_indices.strides[0] = kMax; });
  expect_too_large("permuted_probs_grad", too_large("[4]", "[768614336404564651]", "0"),
                   [](Args& a) { a.permuted_probs_grad->strides[0] = kMostFloats / 3 + 1; });
  // 3 * stride + 1 elements, and the largest stride for which their bytes fit.
  expect_accepted([](Args& a) { a.permuted_probs_grad->strides[0] = (kMostFloats - 1) / 3; });
}

TEST(PermuteWithEpGradOverflow, Offsets) {
  expect_too_large("permuted_tokens_grad", too_large("[4, 2]", "[2, 1]", "9223372036854775807"),
                   [](Args& a) { a.permuted_tokens_grad.offset = kMax; });
  expect_too_large("tokens_grad", too_large("[3, 2]", "[2, 1]", "9223372036854775807"),
                   [](Args& a) { a.tokens_grad.offset = kMax; });
  const int64_t last = kMostFloats - 8;
  expect_accepted([&](Args& a) { a.permuted_tokens_grad.offset = last; });
  expect_too_large("permuted_tokens_grad", too_large("[4, 2]", "[2, 1]", std::to_string(last + 1)),
                   [&](Args& a) { a.permuted_tokens_grad.offset = last + 1; });
}

// No tokens, so no slots, and yet a top_k or rows beyond measure: legal, and nothing to do.
TEST(PermuteWithEpGradOverflow, HugeSizesOfEmptyTensors) {
  Args args = sample_args();
  args.sorted_indices = TensorDesc::contiguous(DType::kI32, {0});
  args.ep_range.reset();
  args.permuted_probs_grad.reset();
  args.probs_grad.reset();
  for (const int64_t top_k : {int64_t{1}, kMax}) {
    for (const int64_t hidden_size : {int64_t{0}, int64_t{7}, kMostFloats}) {
      args.top_k = top_k;
      args.permuted_tokens_grad = TensorDesc::contiguous(DType::kF32, {0, hidden_size});
      args.tokens_grad = TensorDesc::contiguous(DType::kF32, {0, hidden_size});
      for (const std::string& kernel : moe::PermuteWithEpGrad::kernel_names()) {
        if (kernel != "portable" && top_k == kMax) continue;
        moe::PermuteWithEpGrad::plan(args, {.kernel = kernel}).bind({}).run();
      }
    }
  }
  // A row that has more bytes than 63 bits hold is none, even if there are no rows.
  args.permuted_tokens_grad = TensorDesc::contiguous(DType::kF32, {0, kMostFloats + 1});
  expect_rejected("permuted_tokens_grad",
                  too_large("[0, 2305843009213693952]", "[2305843009213693952, 1]", "0"),
                  [&] { moe::PermuteWithEpGrad::plan(args); });
}

// Nothing steps over the strides of no rows, so they may hold anything, with tokens and without.
TEST(PermuteWithEpGradOverflow, HugeStridesOfNoRows) {
  for (const int64_t num_tokens : {0, 4}) {
    Args args = sample_args();
    args.top_k = 2;
    args.ep_range = moe::EpRange{0, 0};
    args.sorted_indices = TensorDesc::contiguous(DType::kI32, {num_tokens * 2});
    args.permuted_tokens_grad = TensorDesc::strided(DType::kF32, {0, 8}, {kMax, 1});
    args.permuted_probs_grad = TensorDesc::strided(DType::kF32, {0}, {kMax});
    args.tokens_grad = TensorDesc::contiguous(DType::kF32, {num_tokens, 8});
    args.probs_grad = TensorDesc::contiguous(DType::kF32, {num_tokens, 2});
    for (const std::string& kernel : moe::PermuteWithEpGrad::kernel_names()) {
      const std::vector<int32_t> indices = {7, 6, 5, 4, 3, 2, 1, 0};
      std::vector<float> tokens_grad(32, 1), probs_grad(8, 1);
      const auto plan = moe::PermuteWithEpGrad::plan(args, {.kernel = kernel});
      plan.bind({.sorted_indices = indices.data(),
                 .tokens_grad = tokens_grad.data(),
                 .probs_grad = probs_grad.data()})
          .run();
      const float want = num_tokens == 0;  // untouched, or zeros
      EXPECT_EQ(tokens_grad, std::vector<float>(32, want)) << kernel;
      EXPECT_EQ(probs_grad, std::vector<float>(8, want)) << kernel;
    }
  }
}

}  // namespace
}  // namespace test
