// Routing as a mixture-of-experts router makes it, and what a permutation makes of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "moe/tensor.h"
#include "shapes.h"

namespace moe::bench {

struct Routing {
  std::vector<int32_t> experts;         // [num_tokens * top_k]: the expert of each slot
  std::vector<int32_t> sorted_indices;  // [num_tokens * top_k]: the global row of each slot
  std::vector<int64_t> rows_per_expert;
};

// Each token names `top_k` distinct experts, all equally likely ("uniform"), or by Zipf's law with
// exponent 1 over the experts in a random order ("zipf"). The same arguments give the same routing
// on every machine.
constexpr uint64_t kRoutingSeed = 20240607;
Routing route(const std::string& distribution, int64_t num_tokens, int64_t num_experts,
              int64_t top_k, uint64_t seed = kRoutingSeed);
// The same from the experts of all slots, each in [0, num_experts).
Routing routing_from(std::vector<int32_t> experts, int64_t num_experts);
// The case's own, or the one that it describes.
Routing routing_of(const Case& c);

// Rank `rank` of `num_ranks` owns the experts [floor(rank*E/n), floor((rank+1)*E/n)): their rows.
EpRange window_of_rank(const Routing& routing, int64_t rank, int64_t num_ranks);

}  // namespace moe::bench
