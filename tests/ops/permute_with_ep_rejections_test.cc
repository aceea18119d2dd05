// Everything that PermuteWithEp rejects, by message; and that the checked mode leaves outputs
// alone.
#include <gtest/gtest.h>

#include <array>

#include "ops/rejection.h"

namespace test {
namespace {

using moe::DType, moe::EpRange, moe::NullArgument, moe::PermuteWithEp, moe::TensorDesc;

// 3 tokens of 2 elements, 2 experts each, the window [1, 5).
PermuteWithEp::Args args() {
  return {.tokens = TensorDesc::contiguous(DType::kF32, {3, 2}),
          .indices = TensorDesc::contiguous(DType::kI32, {3, 2}),
          .probs = TensorDesc::contiguous(DType::kF32, {3, 2}),
          .ep_range = EpRange{1, 5},
          .num_experts = 4,
          .permuted_tokens = TensorDesc::contiguous(DType::kF32, {4, 2}),
          .sorted_indices = TensorDesc::contiguous(DType::kI32, {6}),
          .permuted_probs = TensorDesc::contiguous(DType::kF32, {4}),
          .tokens_per_expert = TensorDesc::contiguous(DType::kI32, {4})};
}

template <class Exception = moe::InvalidArgument, class Break>
void expect_plan_rejects(const std::string& argument, const std::string& problem,
                         Break&& break_it) {
  PermuteWithEp::Args broken = args();
  break_it(broken);
  expect_rejected<Exception>(argument, problem, [&] { PermuteWithEp::plan(broken); });
}

TEST(PermuteRejects, Tokens) {
  expect_plan_rejects("tokens", "dtype int32, but needs one of float32, float16, bfloat16, float64",
                      [](auto& a) { a.tokens.dtype = DType::kI32; });
  expect_plan_rejects("tokens", "1 dimensions, but needs 2: [num_tokens, hidden_size]",
                      [](auto& a) { a.tokens = TensorDesc::contiguous(DType::kF32, {6}); });
  expect_plan_rejects("tokens", "strides [-2, 1], but must be >= 0",
                      [](auto& a) { a.tokens.strides[0] = -2; });
  expect_plan_rejects("tokens", "offset -1, but must be >= 0",
                      [](auto& a) { a.tokens.offset = -1; });
}

TEST(PermuteRejects, Indices) {
  expect_plan_rejects("indices", "dtype float32, but needs one of int32, int64",
                      [](auto& a) { a.indices.dtype = DType::kF32; });
  expect_plan_rejects("indices", "3 dimensions, but needs 2: [num_tokens, top_k], or [num_tokens]",
                      [](auto& a) { a.indices = TensorDesc::contiguous(DType::kI32, {3, 2, 1}); });
  expect_plan_rejects("indices", "shape [3, 0], but needs at least one expert per token",
                      [](auto& a) { a.indices = TensorDesc::contiguous(DType::kI32, {3, 0}); });
  expect_plan_rejects("indices", "of 2 tokens, but tokens has 3",
                      [](auto& a) { a.indices = TensorDesc::contiguous(DType::kI32, {2, 3}); });
}

TEST(PermuteRejects, Probs) {
  expect_plan_rejects("probs", "dtype int64, but needs one of float32, float16, bfloat16, float64",
                      [](auto& a) { a.probs->dtype = DType::kI64; });
  expect_plan_rejects(
      "probs",
      "1 dimensions, but needs 2: [num_tokens, top_k], or [num_tokens] for one expert each",
      [](auto& a) { a.probs = TensorDesc::contiguous(DType::kF32, {6}); });
  expect_plan_rejects(
      "probs",
      "shape [2, 3], but needs [3, 2]: [num_tokens, top_k], or [num_tokens] for one expert each",
      [](auto& a) { a.probs = TensorDesc::contiguous(DType::kF32, {2, 3}); });
  expect_plan_rejects("probs",
                      "dtype float64 beside float32 tokens, but float64 goes with float64 only",
                      [](auto& a) { a.probs->dtype = a.permuted_probs->dtype = DType::kF64; });
  expect_plan_rejects<NullArgument>("permuted_probs", "missing, but needed where probs is given",
                                    [](auto& a) { a.permuted_probs.reset(); });
  expect_plan_rejects("permuted_probs", "given, but needs probs, which is not",
                      [](auto& a) { a.probs.reset(); });
}

TEST(PermuteRejects, Range) {
  for (const auto& [range, shown] : std::vector<std::pair<EpRange, std::string>>{
           {{-1, 3}, "[-1, 3)"}, {{3, 2}, "[3, 2)"}, {{0, 7}, "[0, 7)"}}) {
    expect_plan_rejects("ep_range",
                        shown + ", but needs 0 <= begin <= end <= 6, the number of slots",
                        [&](auto& a) { a.ep_range = range; });
  }
}

TEST(PermuteRejects, Outputs) {
  expect_plan_rejects(
      "permuted_tokens", "3 rows, but the range [1, 5) needs at least 4",
      [](auto& a) { a.permuted_tokens = TensorDesc::contiguous(DType::kF32, {3, 2}); });
  expect_plan_rejects("permuted_probs", "3 rows, but the range [1, 5) needs at least 4",
                      [](auto& a) { a.permuted_probs = TensorDesc::contiguous(DType::kF32, {3}); });
  expect_plan_rejects("permuted_tokens", "dtype float16, but needs float32, the dtype of tokens",
                      [](auto& a) { a.permuted_tokens.dtype = DType::kF16; });
  expect_plan_rejects(
      "permuted_tokens", "shape [4, 3], but needs [4, 2]: [rows, hidden_size]",
      [](auto& a) { a.permuted_tokens = TensorDesc::contiguous(DType::kF32, {4, 3}); });
  expect_plan_rejects("permuted_tokens",
                      "strides [3, 1] for shape [4, 2], but an output must be contiguous",
                      [](auto& a) { a.permuted_tokens.strides[0] = 3; });
  expect_plan_rejects("permuted_probs", "dtype float16, but needs float32, the dtype of probs",
                      [](auto& a) { a.permuted_probs->dtype = DType::kF16; });
  expect_plan_rejects("sorted_indices", "shape [5], but needs [6]: [num_tokens * top_k]",
                      [](auto& a) { a.sorted_indices = TensorDesc::contiguous(DType::kI32, {5}); });
  expect_plan_rejects("sorted_indices", "dtype float32, but needs one of int32, int64",
                      [](auto& a) { a.sorted_indices.dtype = DType::kF32; });
  expect_plan_rejects("tokens_per_expert", "shape [5], but needs [4]: [num_experts]", [](auto& a) {
    a.tokens_per_expert = TensorDesc::contiguous(DType::kI32, {5});
  });
  expect_plan_rejects("tokens_per_expert", "given, but needs num_experts, which is not",
                      [](auto& a) { a.num_experts.reset(); });
  expect_plan_rejects("num_experts", "-1, but needs 0 to 2^31",
                      [](auto& a) { a.num_experts = -1; });
}

TEST(PermuteRejects, Sizes) {
  expect_plan_rejects(
      "tokens",
      "shape [4611686018427387904, 2] with strides [2, 1] and offset 0, but sizes and offsets in "
      "bytes must stay below 2^63",
      [](auto& a) { a.tokens.shape[0] = int64_t{1} << 62; });
  PermuteWithEp::Args huge = args();
  const int64_t many = int64_t{1} << 31;
  huge.tokens = TensorDesc::strided(DType::kF32, {many, 2}, {0, 1});
  huge.indices = TensorDesc::strided(DType::kI32, {many}, {0});
  huge.probs.reset();
  huge.permuted_probs.reset();
  huge.sorted_indices = TensorDesc::contiguous(DType::kI32, {many});
  expect_rejected("sorted_indices", "dtype int32, but 2147483648 slots need int64",
                  [&] { PermuteWithEp::plan(huge); });
  huge.sorted_indices.dtype = DType::kI64;
  expect_rejected("tokens_per_expert", "dtype int32, but 2147483648 slots need int64",
                  [&] { PermuteWithEp::plan(huge); });
}

TEST(PermuteRejects, Engines) {
  expect_rejected("num_threads", "-1, but needs 0 or more",
                  [] { PermuteWithEp::plan(args(), {.num_threads = -1}); });
  EXPECT_THROW(PermuteWithEp::plan(args(), {.kernel = "abacus"}), moe::InvalidArgument);
}

// Memory for args().
struct Buffers {
  std::array<float, 6> tokens{1, 2, 3, 4, 5, 6}, probs{};
  std::array<int32_t, 6> indices{0, 1, 2, 3, 0, 1}, sorted{};
  std::array<float, 8> rows{};
  std::array<float, 4> row_probs{};
  std::array<int32_t, 4> counts{};
  PermuteWithEp::Pointers pointers() {
    return {tokens.data(), indices.data(),   probs.data(), rows.data(),
            sorted.data(), row_probs.data(), counts.data()};
  }
};

TEST(PermuteRejects, NullAddresses) {
  Buffers b;
  const auto plan = PermuteWithEp::plan(args());
  const auto expect_null = [&](const char* name, const char* shape, auto member) {
    PermuteWithEp::Pointers p = b.pointers();
    p.*member = nullptr;
    expect_rejected<NullArgument>(
        name, std::string("null, but needs the address of a tensor of shape ") + shape,
        [&] { plan.bind(p); });
  };
  using P = PermuteWithEp::Pointers;
  expect_null("tokens", "[3, 2]", &P::tokens);
  expect_null("indices", "[3, 2]", &P::indices);
  expect_null("probs", "[3, 2]", &P::probs);
  expect_null("permuted_tokens", "[4, 2]", &P::permuted_tokens);
  expect_null("sorted_indices", "[6]", &P::sorted_indices);
  expect_null("permuted_probs", "[4]", &P::permuted_probs);
  expect_null("tokens_per_expert", "[4]", &P::tokens_per_expert);
}

TEST(PermuteRejects, Overlap) {
  Buffers b;
  const auto plan = PermuteWithEp::plan(args());
  const std::string rule = ", but an output must not share memory with any other tensor";
  const auto expect_overlap = [&](const char* name, const std::string& problem, auto change) {
    PermuteWithEp::Pointers p = b.pointers();
    change(p);
    expect_rejected(name, problem + rule, [&] { plan.bind(p); });
  };
  expect_overlap("permuted_tokens", "overlaps tokens by 24 bytes",
                 [&](auto& p) { p.permuted_tokens = b.tokens.data(); });
  expect_overlap("sorted_indices", "overlaps indices by 4 bytes",
                 [&](auto& p) { p.sorted_indices = &b.indices[5]; });
  expect_overlap("permuted_probs", "overlaps probs by 16 bytes",
                 [&](auto& p) { p.permuted_probs = &b.probs[2]; });
  expect_overlap("tokens_per_expert", "overlaps sorted_indices by 16 bytes",
                 [&](auto& p) { p.tokens_per_expert = b.sorted.data(); });
  PermuteWithEp::Pointers shared = b.pointers();  // inputs may share
  shared.probs = shared.tokens;
  EXPECT_NO_THROW(plan.bind(shared));
}

TEST(PermuteRejects, WorkspaceMissing) {
  Buffers b;
  const auto call = PermuteWithEp::plan(args()).bind(b.pointers());
  ASSERT_GT(call.workspace_bytes(), 0u);
  EXPECT_THROW(call.run(), NullArgument);
}

TEST(PermuteChecked, ReportsTheFirstUnroutedSlotAndWritesNothing) {
  for (const auto& [id, num_experts, message] :
       std::vector<std::tuple<int64_t, std::optional<int64_t>, std::string>>{
           {-3, 4, "indices: slot 4 holds -3, but needs an expert in [0, 4)"},
           {4, 4, "indices: slot 4 holds 4, but needs an expert in [0, 4)"},
           {int64_t{1} << 31, std::nullopt,
            "indices: slot 4 holds 2147483648, but needs an expert in [0, 2147483648)"}}) {
    SCOPED_TRACE(message);
    PermuteWithEp::Args a = args();
    a.check_indices = true;
    a.indices.dtype = DType::kI64;
    a.num_experts = num_experts;
    if (!num_experts) a.tokens_per_expert.reset();
    Buffers b;
    std::array<int64_t, 6> indices{0, 1, 2, 3, id, -9};
    b.sorted.fill(77);
    b.rows.fill(77);
    b.counts.fill(77);
    PermuteWithEp::Pointers p = b.pointers();
    p.indices = indices.data();
    const auto call = PermuteWithEp::plan(a).bind(p);
    std::vector<std::byte> workspace(call.workspace_bytes());
    try {
      call.run(workspace.data());
      ADD_FAILURE() << "was accepted";
    } catch (const moe::IndexError& error) {
      EXPECT_EQ(error.what(), message);
      EXPECT_EQ(error.slot(), 4);
      EXPECT_EQ(error.value(), id);
    }
    EXPECT_EQ(b.sorted[0], 77);
    EXPECT_EQ(b.rows[0], 77);
    EXPECT_EQ(b.counts[0], 77);
    indices = {0, 1, 2, 3, 3, 0};
    EXPECT_NO_THROW(call.run(workspace.data()));
  }
}

}  // namespace
}  // namespace test
