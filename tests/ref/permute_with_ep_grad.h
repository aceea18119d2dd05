// The oracle of PermuteWithEpGrad: the formula, one element at a time, in the order that the
// contract fixes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ref/view.h"

namespace ref {

struct PermuteWithEpGrad {
  View permuted_tokens_grad{};
  View sorted_indices{};
  View permuted_probs_grad{};  // read by probs_grad alone
  int64_t num_tokens = 0;
  int64_t top_k = 1;
  int64_t hidden_size = 0;
  int64_t begin = 0;  // the window of global rows
  int64_t end = 0;
};

// [num_tokens, hidden_size], contiguous, in the type of permuted_tokens_grad. A sum starts with the
// term of slot 0, so it is -0 exactly when every term is -0.
std::vector<std::byte> tokens_grad(const PermuteWithEpGrad& problem);
// [num_tokens, top_k], contiguous, in the type of permuted_probs_grad: copied bits or zero bits.
std::vector<std::byte> probs_grad(const PermuteWithEpGrad& problem);

}  // namespace ref
