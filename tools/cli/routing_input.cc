#include "cli/routing_input.h"

#include <algorithm>
#include <numeric>

#include "cli/errors.h"
#include "cli/tensor_values.h"
#include "files/text.h"
#include "moe/expert_range.h"

namespace moe::tools {
namespace {

// The row of each slot: by expert, equal ones in slot order, unrouted slots last.
std::vector<int64_t> sort_slots(const std::vector<int64_t>& experts,
                                const std::vector<int64_t>& counts) {
  const auto num_experts = static_cast<int64_t>(counts.size());
  std::vector<int64_t> next(counts.size() + 1);
  std::partial_sum(counts.begin(), counts.end(), next.begin() + 1);
  std::vector<int64_t> rows;
  rows.reserve(experts.size());
  for (int64_t expert : experts) {
    const bool routed = expert >= 0 && expert < num_experts;
    rows.push_back(next[static_cast<size_t>(routed ? expert : num_experts)]++);
  }
  return rows;
}

int64_t total(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

void fill_from_indices(RoutingView& view, const StoredTensor& indices) {
  view.num_tokens = indices.shape.empty() ? 0 : indices.shape[0];
  view.top_k = indices.shape.size() > 1 ? indices.shape[1] : 1;
  view.experts = integers(indices);
  view.sorted_indices = sort_slots(view.experts, view.tokens_per_expert);
  view.num_unrouted = std::count_if(view.experts.begin(), view.experts.end(), [&](int64_t expert) {
    return expert < 0 || expert >= view.num_experts;
  });
}

void fill_from_counts(RoutingView& view, const StoredTensor* sorted_indices,
                      const CaseOptions& options) {
  const int64_t slots = total(view.tokens_per_expert);
  if (sorted_indices) view.sorted_indices = integers(*sorted_indices);
  view.top_k = options.given_top_k().value_or(1);
  view.num_tokens =
      (sorted_indices ? static_cast<int64_t>(view.sorted_indices.size()) : slots) / view.top_k;
  view.num_unrouted = view.num_slots() - slots;
}

}  // namespace

int64_t RoutingView::rank_of_row(int64_t row, int64_t num_ranks) const {
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    const EpRange window =
        ep_range_of_rank(std::span<const int64_t>(tokens_per_expert), rank, num_ranks);
    if (row >= window.begin && row < window.end) return rank;
  }
  return -1;
}

RoutingView routing_of_files(const Inputs& inputs, const CaseOptions& options) {
  RoutingView view;
  const StoredTensor* indices = inputs.find("indices");
  if (!indices && !inputs.find("tokens_per_expert")) {
    throw UsageError("routing: needs indices or tokens_per_expert, the files hold " +
                     inputs.names());
  }
  view.tokens_per_expert = expert_counts(inputs, options.given_num_experts());
  view.num_experts = static_cast<int64_t>(view.tokens_per_expert.size());
  if (indices) {
    fill_from_indices(view, *indices);
  } else {
    fill_from_counts(view, inputs.find("sorted_indices"), options);
  }
  return view;
}

RoutingView routing_of_options(const CaseOptions& options) {
  const bench::Routing routing = options.routing();
  const CaseSizes sizes = options.sizes();
  return {.num_tokens = sizes.num_tokens,
          .top_k = sizes.top_k,
          .num_experts = sizes.num_experts,
          .experts = {routing.experts.begin(), routing.experts.end()},
          .sorted_indices = {routing.sorted_indices.begin(), routing.sorted_indices.end()},
          .tokens_per_expert = routing.rows_per_expert};
}

}  // namespace moe::tools
