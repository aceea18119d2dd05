// The routing that a verb looks at: of files, or made from the options of a case.
#pragma once

#include <optional>
#include <vector>

#include "cli/case_options.h"
#include "cli/inputs.h"

namespace moe::tools {

struct RoutingView {
  int64_t num_tokens = 0, top_k = 0, num_experts = 0;
  std::vector<int64_t> experts;         // of each slot; empty where only counts or rows are known
  std::vector<int64_t> sorted_indices;  // the global row of each slot; empty where only counts are
  std::vector<int64_t> tokens_per_expert;
  int64_t num_unrouted = 0;

  int64_t num_slots() const { return num_tokens * top_k; }
  // Whose window a global row lies in; -1 for none.
  int64_t rank_of_row(int64_t row, int64_t num_ranks) const;
};

// From `indices`, or `sorted_indices` and `tokens_per_expert`, or `tokens_per_expert` alone. Throws
// UsageError where the files have none of that.
RoutingView routing_of_files(const Inputs& inputs, const CaseOptions& options);
RoutingView routing_of_options(const CaseOptions& options);

}  // namespace moe::tools
