// One case of PermuteWithEpGrad with its data: the call to measure, and the bytes it must move.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "floor/floor.h"
#include "memory.h"
#include "moe/moe.h"
#include "routing.h"
#include "shapes.h"

namespace moe::bench {

// Buffers that all cases share, so that a page is faulted in once.
struct Memory {
  Buffer rows{Buffer::Content::kValues, 0};
  Buffer probs{Buffer::Content::kValues, 17 * 64};
  Buffer indices{Buffer::Content::kZeros, 34 * 64};
  Buffer tokens_grad{Buffer::Content::kZeros, 51 * 64};
  Buffer probs_grad{Buffer::Content::kZeros, 68 * 64};
  Buffer settle{Buffer::Content::kZeros, 0};
};

class Problem {
 public:
  Problem(const Case& the_case, Memory& memory);

  PermuteWithEpGrad plan() const { return PermuteWithEpGrad::plan(args_); }
  PermuteWithEpGrad::Pointers pointers() const;
  // The bytes that any implementation must move: each row of the window once (every one of them is
  // named by exactly one slot), all indices, the window's probs; all outputs.
  std::vector<Transfer> transfers() const;
  int64_t bytes_moved() const;
  int64_t output_bytes() const { return the_case_.num_tokens * the_case_.row_bytes(); }
  const std::byte* tokens_grad() const { return tokens_grad_; }

  // Poisons the outputs, runs the call, and compares with sums in float64: every element of 64
  // tokens spread over all, and all of probs_grad. Throws std::runtime_error where they differ.
  void check(const BoundCall& call) const;

 private:
  int64_t num_rows() const { return window_.end - window_.begin; }
  double element(int64_t row, int64_t h) const;
  void check_token(int64_t token) const;
  void check_probs() const;

  Case the_case_;
  EpRange window_;
  PermuteWithEpGrad::Args args_;
  std::byte *rows_, *probs_, *indices_, *tokens_grad_, *probs_grad_;
};

}  // namespace moe::bench
