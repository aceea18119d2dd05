// One case of PermuteWithEpGrad with its data: the call to measure, and the bytes it must move.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "moe/moe.h"
#include "op_problem.h"
#include "routing.h"

namespace moe::bench {

class Problem final : public OpProblem {
 public:
  Problem(const Case& the_case, Memory& memory);

  PermuteWithEpGrad plan() const { return PermuteWithEpGrad::plan(args_); }
  PermuteWithEpGrad::Pointers pointers() const;
  BoundCall bind() const override { return plan().bind(pointers()); }
  std::string kernel_name() const override { return plan().kernel_name(); }
  // The bytes that any implementation must move: each row of the window once (every one of them is
  // named by exactly one slot), all indices, the window's probs; all outputs.
  std::vector<Transfer> transfers() const override;
  const std::byte* output() const override { return tokens_grad_; }
  int64_t output_bytes() const override { return the_case_.num_tokens * the_case_.row_bytes(); }

  // Poisons the outputs, runs the call, and compares with sums in float64: every element of 64
  // tokens spread over all, and all of probs_grad. Throws std::runtime_error where they differ.
  void check(const BoundCall& call) const override;

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
