#include "routing.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>

#include "moe/expert_range.h"

namespace moe::bench {
namespace {

// Not the standard library's distributions: those differ between implementations.
double next_unit(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

// Sums of the experts' weights up to and including each.
std::vector<double> cumulative_weights(const std::string& distribution, int64_t num_experts,
                                       std::mt19937_64& random) {
  std::vector<double> weights(static_cast<size_t>(num_experts), 1.0);
  if (distribution == "zipf") {
    for (size_t e = 0; e < weights.size(); ++e) weights[e] = 1.0 / static_cast<double>(e + 1);
    for (size_t e = weights.size(); e > 1; --e) std::swap(weights[e - 1], weights[random() % e]);
  } else if (distribution != "uniform") {
    throw std::invalid_argument("routing: \"" + distribution + "\", but needs uniform or zipf");
  }
  std::partial_sum(weights.begin(), weights.end(), weights.begin());
  return weights;
}

std::vector<int64_t> choose_experts(const std::vector<double>& cumulative, int64_t num_tokens,
                                    int64_t top_k, std::mt19937_64& random) {
  std::vector<int64_t> experts;
  for (int64_t token = 0; token < num_tokens; ++token) {
    const auto first = static_cast<std::ptrdiff_t>(experts.size());
    while (static_cast<int64_t>(experts.size()) < (token + 1) * top_k) {
      const double at = next_unit(random) * cumulative.back();
      const int64_t expert =
          std::upper_bound(cumulative.begin(), cumulative.end() - 1, at) - cumulative.begin();
      const auto chosen = experts.begin() + first;
      if (std::find(chosen, experts.end(), expert) == experts.end()) experts.push_back(expert);
    }
  }
  return experts;
}

}  // namespace

Routing routing_from(std::vector<int32_t> experts, int64_t num_experts) {
  Routing routing;
  routing.experts = std::move(experts);
  routing.rows_per_expert.resize(static_cast<size_t>(num_experts));
  for (int32_t expert : routing.experts) ++routing.rows_per_expert[static_cast<size_t>(expert)];
  std::vector<int64_t> next_row(static_cast<size_t>(num_experts));
  std::exclusive_scan(routing.rows_per_expert.begin(), routing.rows_per_expert.end(),
                      next_row.begin(), int64_t{0});
  for (int32_t expert : routing.experts) {
    routing.sorted_indices.push_back(static_cast<int32_t>(next_row[static_cast<size_t>(expert)]++));
  }
  return routing;
}

Routing route(const std::string& distribution, int64_t num_tokens, int64_t num_experts,
              int64_t top_k, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto cumulative = cumulative_weights(distribution, num_experts, random);
  const auto experts = choose_experts(cumulative, num_tokens, top_k, random);
  return routing_from({experts.begin(), experts.end()}, num_experts);
}

Routing routing_of(const Case& c) {
  return c.experts.empty() ? route(c.routing, c.num_tokens, c.num_experts, c.top_k)
                           : routing_from(c.experts, c.num_experts);
}

EpRange window_of_rank(const Routing& routing, int64_t rank, int64_t num_ranks) {
  return ep_range_of_rank(std::span<const int64_t>(routing.rows_per_expert), rank, num_ranks);
}

}  // namespace moe::bench
