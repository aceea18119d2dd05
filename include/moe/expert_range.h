// Windows over rows from windows over experts: what lies between tokens_per_expert, which
// SortByExpert and PermuteWithEp give, and ep_range, which every operator takes.
#pragma once

#include <cstdint>
#include <span>

#include "moe/export.h"
#include "moe/tensor.h"

namespace moe {

// The global rows of the experts [expert_begin, expert_end): they lie one after another, by expert.
// Throws InvalidArgument unless 0 <= expert_begin <= expert_end <= the number of experts, no count
// is negative, and the rows' numbers stay below 2^63.
MOE_API EpRange expert_range(std::span<const int64_t> tokens_per_expert, int64_t expert_begin,
                             int64_t expert_end);
MOE_API EpRange expert_range(std::span<const int32_t> tokens_per_expert, int64_t expert_begin,
                             int64_t expert_end);

// The global rows of rank `rank` of `num_ranks`, which owns the E experts
// [floor(rank * E / num_ranks), floor((rank + 1) * E / num_ranks)). The windows of all ranks tile
// the routed slots: slots that are not routed belong to no rank. Throws InvalidArgument unless
// 0 <= rank < num_ranks.
MOE_API EpRange ep_range_of_rank(std::span<const int64_t> tokens_per_expert, int64_t rank,
                                 int64_t num_ranks);
MOE_API EpRange ep_range_of_rank(std::span<const int32_t> tokens_per_expert, int64_t rank,
                                 int64_t num_ranks);

}  // namespace moe
