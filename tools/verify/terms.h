// The terms of a token's sum, as plain numbers.
#pragma once

#include <vector>

#include "verify/suspect.h"

namespace moe::tools {

struct Term {
  int64_t row;    // of the buffer
  double weight;  // 1 without probs
};

// Reads operands by their strides.
class Terms {
 public:
  // `rows` names the operand whose rows are added: permuted_tokens_grad or permuted_tokens.
  Terms(const Suspect& suspect, const char* rows);

  // Of the token's slots in the window, in ascending k. A slot whose prob is 0 has none.
  std::vector<Term> of_token(int64_t token) const;
  double element(int64_t row, int64_t h) const;
  FileDType dtype() const { return dtype_; }
  bool weighted() const { return probs_ != nullptr; }
  double weight(int64_t slot) const;

 private:
  const Suspect& suspect_;
  const Operand& rows_;
  const Operand* probs_;
  FileDType dtype_;
};

// Element (i, j) of an operand with two dimensions.
double element_of(const Operand& operand, int64_t i, int64_t j);

}  // namespace moe::tools
