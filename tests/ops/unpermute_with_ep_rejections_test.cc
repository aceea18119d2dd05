// Every rule of UnpermuteWithEp's contract about shapes, dtypes, strides, windows and addresses,
// broken one at a time.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>
#include <vector>

#include "ops/rejection.h"

namespace test {
namespace {

using moe::DType;
using moe::EpRange;
using moe::TensorDesc;
using moe::UnpermuteWithEp;
using Args = UnpermuteWithEp::Args;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// K = 2, range [1, 5), 3 tokens of 2 elements.
Args valid() {
  return {.permuted_tokens = TensorDesc::contiguous(DType::kF32, {4, 2}),
          .sorted_indices = TensorDesc::contiguous(DType::kI32, {6}),
          .probs = TensorDesc::contiguous(DType::kF32, {3, 2}),
          .top_k = 2,
          .ep_range = EpRange{1, 5},
          .out = TensorDesc::contiguous(DType::kF32, {3, 2})};
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
    expect_rejected(row.argument, row.problem, [&] { UnpermuteWithEp::plan(args); });
  }
}

const std::string kFloats = ", but needs one of float32, float16, bfloat16, float64";

TEST(UnpermuteWithEpRejections, TheCallThatIsBrokenIsValid) {
  EXPECT_NO_THROW(UnpermuteWithEp::plan(valid()));
}

TEST(UnpermuteWithEpRejections, DTypes) {
  expect_all({
      {"permuted_tokens", "dtype int32" + kFloats,
       [](Args& a) { a.permuted_tokens.dtype = DType::kI32; }},
      {"probs", "dtype int64" + kFloats, [](Args& a) { a.probs->dtype = DType::kI64; }},
      {"sorted_indices", "dtype float32, but needs one of int32, int64",
       [](Args& a) { a.sorted_indices.dtype = DType::kF32; }},
      {"out", "dtype bfloat16, but needs float32, the dtype of permuted_tokens",
       [](Args& a) { a.out.dtype = DType::kBF16; }},
      {"probs", "dtype float64 beside float32 permuted_tokens, but float64 goes with float64 only",
       [](Args& a) { a.probs->dtype = DType::kF64; }},
      {"probs", "dtype float32 beside float64 permuted_tokens, but float64 goes with float64 only",
       [](Args& a) { a.permuted_tokens.dtype = a.out.dtype = DType::kF64; }},
  });
}

TEST(UnpermuteWithEpRejections, RanksAndShapes) {
  const auto f32 = [](std::initializer_list<int64_t> shape) {
    return TensorDesc::contiguous(DType::kF32, shape);
  };
  const std::string want_out = ", but needs [3, 2]: [num_tokens, hidden_size]";
  const std::string want_probs = ", but needs [3, 2]: [num_tokens, top_k]";
  expect_all({
      {"permuted_tokens", "1 dimensions, but needs 2: [rows, hidden_size]",
       [&](Args& a) { a.permuted_tokens = f32({8}); }},
      {"permuted_tokens", "9 dimensions, but needs 2: [rows, hidden_size]",
       [&](Args& a) { a.permuted_tokens = f32({4, 2, 1, 1, 1, 1, 1, 1, 1}); }},
      {"sorted_indices", "2 dimensions, but needs 1: [num_tokens * top_k]",
       [](Args& a) { a.sorted_indices = TensorDesc::contiguous(DType::kI32, {3, 2}); }},
      {"probs", "1 dimensions, but needs 2: [num_tokens, top_k]",
       [&](Args& a) { a.probs = f32({6}); }},
      {"out", "1 dimensions, but needs 2: [num_tokens, hidden_size]",
       [&](Args& a) { a.out = f32({6}); }},
      {"out", "shape [4, 2]" + want_out, [&](Args& a) { a.out = f32({4, 2}); }},
      {"out", "shape [3, 3]" + want_out, [&](Args& a) { a.out = f32({3, 3}); }},
      {"probs", "shape [2, 2]" + want_probs, [&](Args& a) { a.probs = f32({2, 2}); }},
      {"probs", "shape [3, 3]" + want_probs, [&](Args& a) { a.probs = f32({3, 3}); }},
      {"probs", "shape [6, 1]" + want_probs, [&](Args& a) { a.probs = f32({6, 1}); }},
  });
}

TEST(UnpermuteWithEpRejections, TopK) {
  expect_all({
      {"top_k", "0, but needs at least 1", [](Args& a) { a.top_k = 0; }},
      {"sorted_indices", "72057594037927938 slots, but takes at most 2^56",
       [](Args& a) {
         a.sorted_indices.shape[0] = (int64_t{1} << 56) + 2;
         a.sorted_indices.strides[0] = 0;
       }},
      {"top_k", "-2, but needs at least 1", [](Args& a) { a.top_k = -2; }},
      {"sorted_indices", "6 slots, but needs a multiple of top_k 4", [](Args& a) { a.top_k = 4; }},
      // With probs it must be theirs.
      {"probs", "shape [3, 2], but needs [2, 3]: [num_tokens, top_k]",
       [](Args& a) { a.top_k = 3; }},
  });
}

TEST(UnpermuteWithEpRejections, RangesAndRows) {
  const auto range = [](int64_t begin, int64_t end) {
    return [=](Args& a) { a.ep_range = EpRange{begin, end}; };
  };
  const std::string want = ", but needs 0 <= begin <= end <= 6, the number of slots";
  expect_all({
      {"ep_range", "[-1, 3)" + want, range(-1, 3)},
      {"ep_range", "[3, 2)" + want, range(3, 2)},
      {"ep_range", "[3, 7)" + want, range(3, 7)},
      {"ep_range", "[0, 9223372036854775807)" + want, range(0, kMax)},
      {"permuted_tokens", "3 rows, but the range [1, 5) needs at least 4",
       [](Args& a) { a.permuted_tokens.shape[0] = 3; }},
  });
}

TEST(UnpermuteWithEpRejections, Layouts) {
  expect_all({
      {"permuted_tokens", "strides [-2, 1], but must be >= 0",
       [](Args& a) { a.permuted_tokens.strides[0] = -2; }},
      {"probs", "strides [2, -1], but must be >= 0", [](Args& a) { a.probs->strides[1] = -1; }},
      {"sorted_indices", "offset -1, but must be >= 0",
       [](Args& a) { a.sorted_indices.offset = -1; }},
      {"probs",
       "shape [3, 2] with strides [9223372036854775807, 1] and offset 0, but sizes and offsets in "
       "bytes must stay below 2^63",
       [](Args& a) { a.probs->strides[0] = kMax; }},
      {"out", "strides [3, 1] for shape [3, 2], but an output must be contiguous",
       [](Args& a) { a.out.strides[0] = 3; }},
  });
}

TEST(UnpermuteWithEpRejections, Engine) {
  expect_rejected("num_threads", "-1, but needs 0 or more",
                  [] { UnpermuteWithEp::plan(valid(), {.num_threads = -1}); });
  EXPECT_THROW(UnpermuteWithEp::plan(valid(), {.kernel = "none"}), moe::InvalidArgument);
}

TEST(UnpermuteWithEpAddresses, NullAndOverlap) {
  const UnpermuteWithEp plan = UnpermuteWithEp::plan(valid());
  std::array<float, 64> memory{};
  const UnpermuteWithEp::Pointers good{memory.data(), memory.data() + 8, memory.data() + 16,
                                       memory.data() + 24};
  EXPECT_NO_THROW(plan.bind(good));
  const auto null = [&](const char* name, const char* shape, auto member) {
    auto broken = good;
    broken.*member = nullptr;
    expect_rejected<moe::NullArgument>(
        name, std::string("null, but needs the address of a tensor of shape ") + shape,
        [&] { plan.bind(broken); });
  };
  null("permuted_tokens", "[4, 2]", &UnpermuteWithEp::Pointers::permuted_tokens);
  null("sorted_indices", "[6]", &UnpermuteWithEp::Pointers::sorted_indices);
  null("probs", "[3, 2]", &UnpermuteWithEp::Pointers::probs);
  null("out", "[3, 2]", &UnpermuteWithEp::Pointers::out);
  const auto overlap = [&](const char* other, float* out, int bytes) {
    auto broken = good;
    broken.out = out;
    expect_rejected("out",
                    std::string("overlaps ") + other + " by " + std::to_string(bytes) +
                        " bytes, but an output must not share memory with any other tensor",
                    [&] { plan.bind(broken); });
  };
  overlap("permuted_tokens", memory.data() + 2, 24);
  overlap("sorted_indices", memory.data() + 13, 4);
  overlap("probs", memory.data() + 21, 4);
}

}  // namespace
}  // namespace test
