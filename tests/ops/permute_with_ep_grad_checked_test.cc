// The checked mode: which slot it reports, what it costs, and that nothing is written before it.
#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "ops/grad_case.h"
#include "ref/routing.h"
#include "support/effort.h"

namespace test {
namespace {

using moe::DType;
using moe::PermuteWithEpGrad;

std::vector<int64_t> counting(int64_t n) {
  std::vector<int64_t> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = i;
  return values;
}

// Runs in the checked mode on every kernel: the error, after making sure that no output changed.
void expect_index_error(GradCase c, int64_t slot, int64_t value, const std::string& message) {
  c.check_indices = true;
  const GradProblem problem(c);
  for (const std::string& kernel : PermuteWithEpGrad::kernel_names()) {
    SCOPED_TRACE(testing::Message() << kernel << " " << c);
    std::vector<std::byte> tokens(problem.expected().tokens.size(), std::byte{0x5a});
    std::vector<std::byte> probs(problem.expected().probs.size(), std::byte{0x5a});
    const auto tokens_before = tokens, probs_before = probs;
    auto pointers = problem.inputs();
    pointers.tokens_grad = tokens.data();
    pointers.probs_grad = probs.data();
    const auto plan =
        PermuteWithEpGrad::plan(problem.args(), {.num_threads = c.num_threads, .kernel = kernel});
    const GuardedBuffer workspace(plan.workspace_bytes(), 1);
    try {
      plan.bind(pointers).run(workspace.data());
      ADD_FAILURE() << "was accepted";
    } catch (const moe::IndexError& error) {
      EXPECT_EQ(error.slot(), slot);
      EXPECT_EQ(error.value(), value);
      EXPECT_EQ(error.what(), message);
    }
    EXPECT_TRUE(tokens == tokens_before && probs == probs_before) << "an output was written";
    EXPECT_TRUE(workspace.intact());
  }
}

void expect_outside(GradCase c, int64_t slot, int64_t value) {
  expect_index_error(c, slot, value,
                     "sorted_indices: slot " + std::to_string(slot) + " holds " +
                         std::to_string(value) + ", but needs a row in [0, " +
                         std::to_string(c.num_slots()) + ")");
}

void expect_duplicate(GradCase c, int64_t slot, int64_t value) {
  expect_index_error(c, slot, value,
                     "sorted_indices: slot " + std::to_string(slot) + " holds " +
                         std::to_string(value) +
                         ", which an earlier slot holds, but each slot needs a row of its own");
}

GradCase with(int64_t num_slots, DType index, std::vector<int64_t> indices) {
  return {.index_dtype = index,
          .probs_dtype = DType::kBF16,
          .num_tokens = num_slots,
          .top_k = 1,
          .ep_range = moe::EpRange{num_slots / 2, num_slots},
          .indices = std::move(indices)};
}

TEST(PermuteWithEpGradChecked, ValidIndicesPass) {
  for (const int64_t tokens : {0, 1, 2, 5, 8, 21}) {
    for (const int64_t top_k : {1, 3, 8}) {
      for (const DType index : {DType::kI32, DType::kI64}) {
        expect_matches_oracle({.index_dtype = index,
                               .num_tokens = tokens,
                               .top_k = top_k,
                               .index = {.stride = 2, .offset = 1},
                               .check_indices = true});
      }
    }
  }
}

TEST(PermuteWithEpGradChecked, OutsideAtEverySlot) {
  for (const DType index : {DType::kI32, DType::kI64}) {
    for (const int64_t slots : {1, 7, 8, 9, 20}) {
      for (int64_t slot = 0; slot < slots; ++slot) {
        for (const int64_t value : {int64_t{-1}, slots, int64_t{INT32_MIN}, int64_t{INT32_MAX}}) {
          std::vector<int64_t> indices = counting(slots);
          indices[static_cast<size_t>(slot)] = value;
          expect_outside(with(slots, index, indices), slot, value);
        }
      }
    }
  }
}

TEST(PermuteWithEpGradChecked, WideValuesAreNotCut) {
  for (const int64_t value :
       {int64_t{1} << 32, -(int64_t{1} << 32), (int64_t{1} << 32) + 3,
        std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    std::vector<int64_t> indices = counting(9);
    indices[4] = value;
    expect_outside(with(9, DType::kI64, indices), 4, value);
  }
}

// Every pair of slots, also where both lie outside the window.
TEST(PermuteWithEpGradChecked, DuplicatesAtEverySlot) {
  for (const int64_t slots : {2, 9, 17}) {
    for (int64_t first = 0; first < slots; ++first) {
      for (int64_t second = first + 1; second < slots; ++second) {
        std::vector<int64_t> indices = ref::permutation(slots, 3);
        const int64_t value = indices[static_cast<size_t>(first)];
        indices[static_cast<size_t>(second)] = value;
        expect_duplicate(with(slots, DType::kI32, indices), second, value);
      }
    }
  }
}

TEST(PermuteWithEpGradChecked, ReportsTheFirstBadSlot) {
  expect_duplicate(with(6, DType::kI32, {0, 1, 1, -1, 6, 0}), 2, 1);
  expect_outside(with(6, DType::kI32, {0, 6, 0, 1, 1, -1}), 1, 6);
  expect_duplicate(with(6, DType::kI64, std::vector<int64_t>(6, 5)), 1, 5);
}

TEST(PermuteWithEpGradChecked, StridedIndices) {
  GradCase c = with(9, DType::kI32, {0, 1, 2, 3, 4, 4, 6, 7, 8});
  c.index = {.stride = 3, .offset = 2};
  expect_duplicate(c, 5, 4);
  GradCase same = with(9, DType::kI32, std::vector<int64_t>(9, 2));
  same.index = {.stride = 0};
  expect_duplicate(same, 1, 2);
}

TEST(PermuteWithEpGradChecked, ManySlotsAndThreads) {
  const int64_t slots = effort(200003);
  GradCase c = with(slots, DType::kI32, ref::permutation(slots, 9));
  c.hidden_size = 2;
  for (const int threads : {1, 2, 3, 7}) {
    c.num_threads = threads;
    expect_matches_oracle([&] {
      GradCase valid = c;
      valid.check_indices = true;
      return valid;
    }());
    for (const int64_t slot : {int64_t{1}, slots / 2, slots - 1}) {
      GradCase bad = c;
      bad.indices[static_cast<size_t>(slot)] = bad.indices[0];
      expect_duplicate(bad, slot, bad.indices[0]);
      // A second fault behind the first one is not reported, whoever finds it first.
      bad.indices[static_cast<size_t>(slots - 1)] = -7;
      if (slot < slots - 1) expect_duplicate(bad, slot, bad.indices[0]);
    }
  }
}

TEST(PermuteWithEpGradChecked, CostsOneBitForEachSlot) {
  for (const int64_t inner : {1, 2}) {
    for (int64_t slots = 0; slots <= 33; ++slots) {
      GradCase c = with(slots, DType::kI32, counting(slots));
      c.tokens.inner_stride = inner;
      const size_t plain = PermuteWithEpGrad::plan(GradProblem(c).args()).workspace_bytes();
      c.check_indices = true;
      const GradProblem problem(c);
      const auto plan = PermuteWithEpGrad::plan(problem.args());
      EXPECT_EQ(plan.workspace_bytes(), plain + static_cast<size_t>((slots + 7) / 8));
      EXPECT_LE(plain, size_t{1} << 20);
    }
  }
}

TEST(PermuteWithEpGradChecked, NeedsItsWorkspace) {
  GradCase c = with(12, DType::kI32, counting(12));
  c.check_indices = true;
  const GradProblem problem(c);
  std::vector<std::byte> tokens(problem.expected().tokens.size()), probs(24);
  auto pointers = problem.inputs();
  pointers.tokens_grad = tokens.data();
  pointers.probs_grad = probs.data();
  const moe::BoundCall call = PermuteWithEpGrad::plan(problem.args()).bind(pointers);
  try {
    call.run();
    ADD_FAILURE() << "was accepted";
  } catch (const moe::NullArgument& error) {
    EXPECT_EQ(error.argument(), "workspace");
    EXPECT_EQ(std::string(error.what()),
              "workspace: null, but needs " + std::to_string(call.workspace_bytes()) + " bytes");
  }
}

TEST(PermuteWithEpGradChecked, UncheckedTakesAnything) {
  expect_matches_oracle(with(6, DType::kI32, {0, 1, 1, -1, 6, 0}));
}

}  // namespace
}  // namespace test
