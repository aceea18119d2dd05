// One case of UnpermuteWithEp and of its gradient: described in a few words, made into guarded
// buffers, run on every kernel, and compared with the oracles bit for bit.
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
#include "ref/unpermute_with_ep.h"
#include "support/guarded_buffer.h"

namespace test {

struct UnpermuteCase {
  moe::DType dtype = moe::DType::kF32;
  moe::DType index_dtype = moe::DType::kI32;
  std::optional<moe::DType> probs_dtype{};
  int64_t num_tokens = 5;
  int64_t top_k = 3;
  int64_t hidden_size = 7;
  std::optional<moe::EpRange> ep_range{};
  // Rows of the permuted tensors; -1: as many as the window has (without a window: L). Rows of
  // permuted_tokens behind the window's are not there: reading them faults.
  int64_t rows = -1;
  Layout permuted{};
  Layout grad{};
  Layout probs{};  // inner_stride: from slot to slot
  Layout index{};
  size_t out_slack_bytes = 0;
  std::vector<int64_t> indices{};  // empty: a random permutation of [0, L)
  int64_t zero_probs = 4;          // one prob of so many is 0 or -0; 0: none
  bool with_probs_grad = true;     // where there are probs; the gradient has permuted_tokens then
  Values values = Values::kFinite;
  uint64_t seed = 1;
  int num_threads = 0;
  bool check_indices = false;

  int64_t num_slots() const { return num_tokens * top_k; }
};
std::ostream& operator<<(std::ostream& out, const UnpermuteCase& c);

struct UnpermuteOutputs {
  std::vector<std::byte> tokens;  // of the forward
  std::vector<std::byte> rows;    // of the gradient
  std::vector<std::byte> probs;   // of the gradient
};

// The buffers of a case, filled; the library's arguments and the oracles' over the same bytes.
class UnpermuteData {
 public:
  explicit UnpermuteData(const UnpermuteCase& c);

  const moe::UnpermuteWithEp::Args& args() const { return args_; }
  const moe::UnpermuteWithEpGrad::Args& grad_args() const { return grad_args_; }
  // The inputs' addresses; outputs are null.
  moe::UnpermuteWithEp::Pointers inputs() const;
  moe::UnpermuteWithEpGrad::Pointers grad_inputs() const;

  std::byte* permuted_data() const { return permuted_->data(); }
  std::byte* grad_data() const { return grad_->data(); }
  std::byte* probs_data() const { return probs_->data(); }
  UnpermuteOutputs expected() const;
  // Plan, bind and run into fresh outputs that hold `poison` in every byte. They throw what the
  // library throws; a write around an output or the workspace is a test failure.
  std::vector<std::byte> run_forward(const moe::Engine& engine, int poison = 0xff) const;
  UnpermuteOutputs run_grad(const moe::Engine& engine, int poison = 0xff) const;

 private:
  void make_permuted();
  void make_grad();
  void make_probs();
  void make_indices();
  ref::View fill(const GuardedBuffer& buffer, moe::DType dtype, const Layout& layout, int64_t rows,
                 int64_t width, uint64_t seed) const;

  UnpermuteCase case_;
  int64_t memory_rows_ = 0;
  moe::UnpermuteWithEp::Args args_;
  moe::UnpermuteWithEpGrad::Args grad_args_;
  ref::Unpermute reference_;
  std::unique_ptr<GuardedBuffer> permuted_, grad_, probs_, index_;
};

void expect_same(const UnpermuteCase& c, const UnpermuteOutputs& got, const UnpermuteOutputs& want);

// Runs the case, forward and gradient, on every kernel of this machine, into two different poisons,
// and compares with the oracles. A kernel may refuse only what it cannot take: inner strides other
// than 1, and in the forward more than 1024 experts.
void expect_matches_oracle(const UnpermuteCase& c);

}  // namespace test
