// The oracles of UnpermuteWithEp and of its gradient: the formulas, one element at a time, in the
// order that the contract fixes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ref/view.h"

namespace ref {

// What both read. A view without data is absent.
struct Unpermute {
  View permuted_tokens{};
  View sorted_indices{};
  View probs{};                   // [num_tokens, top_k]; absent: every weight is 1
  View unpermuted_tokens_grad{};  // read by the gradient alone
  int64_t num_tokens = 0;
  int64_t top_k = 1;
  int64_t hidden_size = 0;
  int64_t begin = 0;  // the window of global rows
  int64_t end = 0;
};

// [num_tokens, hidden_size], contiguous, in the type of permuted_tokens. A sum starts with the term
// of slot 0, so it is -0 exactly when every term is -0.
std::vector<std::byte> unpermuted(const Unpermute& problem);
// [num_rows, hidden_size], contiguous, in the type of unpermuted_tokens_grad. Where several slots
// name a row, the last one has it.
std::vector<std::byte> permuted_tokens_grad(const Unpermute& problem, int64_t num_rows);
// [num_tokens, top_k], contiguous, in the type of probs.
std::vector<std::byte> unpermute_probs_grad(const Unpermute& problem);

}  // namespace ref
