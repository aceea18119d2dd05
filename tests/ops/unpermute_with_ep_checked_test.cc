// The checked mode: which slot it reports, what it costs, and that nothing is written before it.
#include <gtest/gtest.h>

#include "ops/unpermute_case.h"
#include "ref/routing.h"
#include "support/effort.h"

namespace test {
namespace {

using moe::DType;
using moe::UnpermuteWithEp;
using moe::UnpermuteWithEpGrad;

struct Bad {
  int64_t slot, value;
  std::string problem;

  std::string message() const {
    return "sorted_indices: slot " + std::to_string(slot) + " holds " + std::to_string(value) +
           ", " + problem;
  }
};

template <class Call>
void expect_index_error(const Bad& bad, Call&& call) {
  try {
    call();
    ADD_FAILURE() << "was accepted";
  } catch (const moe::IndexError& error) {
    EXPECT_EQ(error.slot(), bad.slot);
    EXPECT_EQ(error.value(), bad.value);
    EXPECT_EQ(error.what(), bad.message());
  }
}

// Both operators on every kernel report the slot, and no output changes.
void expect_reported(UnpermuteCase c, const Bad& bad) {
  c.check_indices = true;
  const UnpermuteData data(c);
  const UnpermuteOutputs sizes = data.expected();
  for (const std::string& kernel : UnpermuteWithEp::kernel_names()) {
    SCOPED_TRACE(testing::Message() << kernel << " " << c);
    const moe::Engine engine{.num_threads = c.num_threads, .kernel = kernel};
    std::vector<std::byte> out(sizes.tokens.size(), std::byte{0x5a});
    std::vector<std::byte> rows(sizes.rows.size(), std::byte{0x5a});
    std::vector<std::byte> probs(sizes.probs.size(), std::byte{0x5a});
    const auto out_before = out, rows_before = rows, probs_before = probs;
    auto pointers = data.inputs();
    pointers.out = out.data();
    auto grad_pointers = data.grad_inputs();
    grad_pointers.permuted_tokens_grad = rows.data();
    grad_pointers.probs_grad = probs.data();
    const auto forward = UnpermuteWithEp::plan(data.args(), engine);
    const auto grad = UnpermuteWithEpGrad::plan(data.grad_args(), engine);
    const GuardedBuffer forward_space(forward.workspace_bytes(), 1);
    const GuardedBuffer grad_space(grad.workspace_bytes(), 1);
    expect_index_error(bad, [&] { forward.bind(pointers).run(forward_space.data()); });
    expect_index_error(bad, [&] { grad.bind(grad_pointers).run(grad_space.data()); });
    EXPECT_TRUE(out == out_before && rows == rows_before && probs == probs_before)
        << "an output was written";
    EXPECT_TRUE(forward_space.intact() && grad_space.intact());
  }
}

std::string outside(int64_t num_slots) {
  return "but needs a row in [0, " + std::to_string(num_slots) + ")";
}
const char* const kDuplicate = "which an earlier slot holds, but each slot needs a row of its own";

UnpermuteCase with(std::vector<int64_t> indices, DType index = DType::kI32) {
  const auto num_slots = static_cast<int64_t>(indices.size());
  return {.index_dtype = index,
          .probs_dtype = DType::kBF16,
          .num_tokens = num_slots,
          .top_k = 1,
          .ep_range = moe::EpRange{num_slots / 2, num_slots},
          .indices = std::move(indices)};
}

TEST(UnpermuteWithEpChecked, ValidIndicesPass) {
  for (const int64_t tokens : {0, 1, 2, 5, 8, 21}) {
    for (const int64_t top_k : {1, 3, 8}) {
      expect_matches_oracle({.probs_dtype = DType::kF32,
                             .num_tokens = tokens,
                             .top_k = top_k,
                             .index = {.stride = 2, .offset = 1},
                             .check_indices = true});
    }
  }
}

TEST(UnpermuteWithEpChecked, ReportsTheFirstBadSlot) {
  expect_reported(with({0, 1, 1, -1, 6, 0}), {2, 1, kDuplicate});
  expect_reported(with({0, 6, 0, 1, 1, -1}), {1, 6, outside(6)});
  expect_reported(with({0, 1, 2, 3, 4, -1}), {5, -1, outside(6)});
  expect_reported(with({5, 5, 5, 5, 5, 5}, DType::kI64), {1, 5, kDuplicate});
  const int64_t wide = (int64_t{1} << 32) + 3;
  expect_reported(with({0, 1, wide, 3}, DType::kI64), {2, wide, outside(4)});
}

TEST(UnpermuteWithEpChecked, EveryDuplicate) {
  for (int64_t first = 0; first < 9; ++first) {
    for (int64_t second = first + 1; second < 9; ++second) {
      std::vector<int64_t> indices = ref::permutation(9, 3);
      const int64_t value = indices[static_cast<size_t>(first)];
      indices[static_cast<size_t>(second)] = value;
      expect_reported(with(std::move(indices)), {second, value, kDuplicate});
    }
  }
}

TEST(UnpermuteWithEpChecked, Workspace) {
  for (int64_t slots = 0; slots <= 33; ++slots) {
    UnpermuteCase c = with(ref::permutation(slots, 1));
    const int64_t rows = slots - slots / 2;
    const auto plans = [&] {
      const UnpermuteData data(c);
      return std::pair(UnpermuteWithEp::plan(data.args()).workspace_bytes(),
                       UnpermuteWithEpGrad::plan(data.grad_args()).workspace_bytes());
    };
    const auto [forward, grad] = plans();
    EXPECT_EQ(forward, 0u);
    EXPECT_LE(grad, static_cast<size_t>(4 * rows + 3));
    c.check_indices = true;
    const auto [checked_forward, checked_grad] = plans();
    EXPECT_EQ(checked_forward, static_cast<size_t>((slots + 7) / 8));
    EXPECT_EQ(checked_grad, std::max(grad, checked_forward));
  }
}

TEST(UnpermuteWithEpChecked, TheGradientNeedsItsWorkspace) {
  const UnpermuteData data(with(ref::permutation(12, 2)));
  std::vector<std::byte> rows(data.expected().rows.size()), probs(24);
  auto pointers = data.grad_inputs();
  pointers.permuted_tokens_grad = rows.data();
  pointers.probs_grad = probs.data();
  const moe::BoundCall call = UnpermuteWithEpGrad::plan(data.grad_args()).bind(pointers);
  try {
    call.run();
    ADD_FAILURE() << "was accepted";
  } catch (const moe::NullArgument& error) {
    EXPECT_EQ(std::string(error.what()),
              "workspace: null, but needs " + std::to_string(call.workspace_bytes()) + " bytes");
  }
}

}  // namespace
}  // namespace test
