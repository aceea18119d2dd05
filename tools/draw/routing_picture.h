// A routing as a picture: tokens per expert as bars, the windows of ranks as bands; and where each
// token's copies go, for a small one.
#pragma once

#include <string>

#include "cli/routing_input.h"

namespace moe::tools {

// How unequal a routing is.
struct Imbalance {
  int64_t largest_expert = 0, num_empty_experts = 0;
  double mean_expert = 0;
  int64_t largest_rank = 0, num_empty_ranks = 0;
  double mean_rank = 0;
  double expert_factor() const {
    return mean_expert > 0 ? static_cast<double>(largest_expert) / mean_expert : 0;
  }
  double rank_factor() const {
    return mean_rank > 0 ? static_cast<double>(largest_rank) / mean_rank : 0;
  }
};

Imbalance imbalance_of(const RoutingView& routing, int64_t num_ranks);
std::string draw_routing(const RoutingView& routing, int64_t num_ranks);

}  // namespace moe::tools
