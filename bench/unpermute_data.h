// The inputs that UnpermuteWithEp and its gradient share, for one case.
#pragma once

#include <cstdint>
#include <string>

#include "op_problem.h"
#include "routing.h"

namespace moe::bench {

class UnpermuteData {
 public:
  // Router probabilities are float32 in every model of shapes.json.
  static constexpr int64_t kProbBytes = 4;

  // The rows of the permuted tokens have the case's gap.
  UnpermuteData(const Case& c, Memory& memory);

  const Case& the_case() const { return case_; }
  EpRange window() const { return window_; }
  int64_t num_rows() const { return window_.end - window_.begin; }
  int64_t num_slots() const { return case_.num_tokens * case_.top_k; }
  // The row of the window that a slot names, or -1.
  int64_t row_of(int64_t slot) const;
  int64_t num_tokens_with_rows() const;

  TensorDesc rows_desc() const;
  TensorDesc indices_desc() const { return TensorDesc::contiguous(DType::kI32, {num_slots()}); }
  TensorDesc probs_desc() const {
    return TensorDesc::contiguous(DType::kF32, {case_.num_tokens, case_.top_k});
  }
  const std::byte* rows() const { return rows_; }
  const std::byte* probs() const { return probs_; }
  const std::byte* indices() const { return indices_; }

  double value(int64_t row, int64_t h) const;  // of the permuted tokens
  double prob(int64_t slot) const;

 private:
  int64_t row_stride_bytes() const { return case_.row_bytes() + case_.row_gap_bytes; }

  Case case_;
  Routing routing_;
  EpRange window_;
  std::byte *rows_, *probs_, *indices_;
};

// Throws std::runtime_error unless `got` is within `allowed` of `want`.
void expect_close(const std::string& what, double got, double want, double allowed);

}  // namespace moe::bench
