// One case of PermuteWithEp: described in a few words, made into guarded buffers, run on every
// kernel, and compared with the oracle bit for bit.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "moe/moe.h"
#include "ops/values.h"
#include "ref/permute_with_ep.h"
#include "support/guarded_buffer.h"

namespace test {

struct PermuteCase {
  moe::DType dtype = moe::DType::kF32;
  moe::DType index_dtype = moe::DType::kI32;
  std::optional<moe::DType> probs_dtype{};
  moe::DType sorted_dtype = moe::DType::kI32;
  std::optional<moe::DType> counts_dtype{};
  int64_t num_tokens = 5;
  int64_t top_k = 3;
  int64_t hidden_size = 7;
  std::optional<int64_t> num_experts{};
  std::optional<moe::EpRange> ep_range{};
  int64_t rows = -1;  // of the outputs; -1: the window's (without a window: L)
  int64_t probs_rows = -1;
  bool flat = false;  // indices and probs are [T]
  Layout tokens{};
  Layout probs{};
  Layout index{};
  size_t out_slack_bytes = 0;
  std::vector<int64_t> experts{};  // of the slots; empty: random ones of [-1, 8)
  uint64_t seed = 1;
  int num_threads = 0;
  bool check_indices = false;

  int64_t num_slots() const { return num_tokens * top_k; }
};
std::ostream& operator<<(std::ostream& out, const PermuteCase& c);

struct Permuted {
  std::vector<std::byte> tokens, sorted, probs, counts;
  bool operator==(const Permuted&) const = default;
};

// The buffers of a case, filled; the library's arguments and the oracle's over the same bytes.
class PermuteProblem {
 public:
  explicit PermuteProblem(const PermuteCase& c);

  const moe::PermuteWithEp::Args& args() const { return args_; }
  // The inputs' addresses; outputs are null.
  const moe::PermuteWithEp::Pointers& inputs() const { return inputs_; }

  Permuted expected() const;
  // Plans, binds and runs into fresh outputs that hold `poison` in every byte. Throws what the
  // library throws; a write around an output is a test failure.
  Permuted run(const moe::Engine& engine, int poison = 0xff) const;

 private:
  // A buffer of `rows` x `width` elements, its description and the oracle's view of it.
  struct Input {
    std::unique_ptr<GuardedBuffer> buffer;
    moe::TensorDesc desc;
    ref::View view;
  };
  static Input make(moe::DType dtype, Layout layout, int64_t rows, int64_t width, bool flat);
  void make_outputs();

  PermuteCase case_;
  moe::PermuteWithEp::Args args_;
  moe::PermuteWithEp::Pointers inputs_;
  ref::PermuteWithEp reference_;
  Input tokens_, index_, probs_;
};

// Runs the case on every kernel of this machine, into two different poisons, and compares with the
// oracle. Only kernels that the contract lets refuse may: those without "portable", an inner stride
// or more experts per token than they hold.
void expect_matches_oracle(const PermuteCase& c);

}  // namespace test
