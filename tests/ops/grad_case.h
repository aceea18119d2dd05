// One case of PermuteWithEpGrad: described in a few words, made into guarded buffers, run on every
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
#include "ref/permute_with_ep_grad.h"
#include "support/guarded_buffer.h"

namespace test {

struct GradCase {
  moe::DType dtype = moe::DType::kF32;
  moe::DType index_dtype = moe::DType::kI32;
  std::optional<moe::DType> probs_dtype{};
  int64_t num_tokens = 5;
  int64_t top_k = 3;
  int64_t hidden_size = 7;
  std::optional<moe::EpRange> ep_range{};
  // Rows of the descriptions; -1: as many as the window has (without a window: L). Rows behind the
  // window's are not there: reading them faults.
  int64_t rows = -1;
  int64_t probs_rows = -1;
  Layout tokens{};
  Layout probs{};
  Layout index{};
  size_t out_slack_bytes = 0;
  std::vector<int64_t> indices{};  // empty: a random permutation of [0, L)
  Values values = Values::kFinite;
  uint64_t seed = 1;
  int num_threads = 0;
  bool check_indices = false;

  int64_t num_slots() const { return num_tokens * top_k; }
};
std::ostream& operator<<(std::ostream& out, const GradCase& c);

struct Outputs {
  std::vector<std::byte> tokens;
  std::vector<std::byte> probs;
};

// The buffers of a case, filled; the library's arguments and the oracle's over the same bytes.
class GradProblem {
 public:
  explicit GradProblem(const GradCase& c);

  const moe::PermuteWithEpGrad::Args& args() const { return args_; }
  // The inputs' addresses; outputs are null.
  const moe::PermuteWithEpGrad::Pointers& inputs() const { return inputs_; }

  std::byte* tokens_data() const { return tokens_->data(); }
  std::byte* probs_data() const { return probs_->data(); }
  Outputs expected() const;
  // Plans, binds and runs into fresh outputs that hold `poison` in every byte. Throws what the
  // library throws; a write around an output is a test failure.
  Outputs run(const moe::Engine& engine, int poison = 0xff) const;

 private:
  void make_tokens();
  void make_probs();
  void make_indices();

  GradCase case_;
  int64_t window_rows_ = 0;
  moe::PermuteWithEpGrad::Args args_;
  moe::PermuteWithEpGrad::Pointers inputs_;
  ref::PermuteWithEpGrad reference_;
  std::unique_ptr<GuardedBuffer> tokens_, probs_, index_;
};

// Tokens may differ in the bits of a NaN, nothing else; probabilities in nothing at all.
void expect_same(const GradCase& c, const Outputs& got, const Outputs& want);

// Whether a kernel takes a case: the portable one takes all, the others rows without inner stride
// and no more experts than they pack.
bool takes(const std::string& kernel, const GradCase& c);

// Runs the case on every kernel of this machine, into two different poisons, and compares with the
// oracle. A kernel may refuse only what takes() says.
void expect_matches_oracle(const GradCase& c);

}  // namespace test
