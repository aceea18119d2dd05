// A case with somebody's results: all that hypotheses look at.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/window_options.h"
#include "files/text.h"
#include "operators/run.h"

namespace moe::tools {

struct Suspect {
  const Operator& op;
  const Operands& operands;
  const Settings& settings;  // top_k always set
  const Sizes& sizes;
  const std::vector<StoredTensor>& ours;
  std::map<std::string, StoredTensor> theirs;  // row-major; those of our outputs that were given
  std::optional<RankOf> rank;
  std::vector<int64_t> counts;   // tokens per expert, where the files tell
  std::vector<int64_t> rows;     // the global row of each slot: sorted_indices
  std::vector<int64_t> experts;  // of each slot; permute alone

  bool is(const char* verb) const { return op.verb == std::string(verb); }
  bool has(const char* operand) const { return operands.count(operand) > 0; }
  int64_t num_window_rows() const { return sizes.window.end - sizes.window.begin; }
  int64_t num_slots() const { return sizes.num_slots(); }
  const StoredTensor* our(const std::string& name) const;
  // Most terms of a sum in an output, where slots outside the window have none; 0 for copies.
  int64_t num_terms(const std::string& output) const;
};

// The inverse of a permutation of [0, n); empty where it is none.
std::vector<int64_t> inverse(const std::vector<int64_t>& permutation);

}  // namespace moe::tools
