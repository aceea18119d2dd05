// The oracle of PermuteWithEp and of the sort that it begins with: the definitions, one element at
// a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ref/view.h"

namespace ref {

struct PermuteWithEp {
  View tokens{};
  View indices{};  // (t, k)
  View probs{};    // (t, k); read by permuted_probs alone
  int64_t num_tokens = 0;
  int64_t top_k = 1;
  int64_t hidden_size = 0;
  int64_t num_experts = -1;  // -1: any ids
  int64_t begin = 0;         // the window of global rows
  int64_t end = 0;
};

// The global row of each slot: by expert, equal ones in slot order, unrouted slots last.
std::vector<int64_t> sorted_indices(const PermuteWithEp& problem);
// How many slots name each expert; needs num_experts.
std::vector<int64_t> tokens_per_expert(const PermuteWithEp& problem);
// [rows, hidden_size], contiguous, and [rows]: copied bits, and zero bits behind the window's rows.
std::vector<std::byte> permuted_tokens(const PermuteWithEp& problem, int64_t rows);
std::vector<std::byte> permuted_probs(const PermuteWithEp& problem, int64_t rows);

}  // namespace ref
