#include "moe/expert_range.h"

#include "core/text.h"
#include "moe/error.h"

namespace moe {
namespace {

template <class Count>
void check_experts(std::span<const Count> counts, int64_t begin, int64_t end) {
  const auto num_experts = static_cast<int64_t>(counts.size());
  if (begin < 0 || begin > end) {
    throw InvalidArgument("expert_begin", text(begin, ", but needs 0 <= expert_begin <= ", end,
                                               ", the given expert_end"));
  }
  if (end > num_experts) {
    throw InvalidArgument("expert_end",
                          text(end, ", but tokens_per_expert has ", num_experts, " experts only"));
  }
}

// The sum of the counts [begin, end) and of `before`.
template <class Count>
int64_t add_counts(std::span<const Count> counts, int64_t begin, int64_t end, int64_t before) {
  for (int64_t expert = begin; expert < end; ++expert) {
    const int64_t count = counts[static_cast<size_t>(expert)];
    if (count < 0) {
      throw InvalidArgument("tokens_per_expert",
                            text(count, " for expert ", expert, ", but a count must be >= 0"));
    }
    if (__builtin_add_overflow(before, count, &before)) {
      throw InvalidArgument("tokens_per_expert", text("sums up to 2^63 or more at expert ", expert,
                                                      ", but rows must stay below"));
    }
  }
  return before;
}

template <class Count>
EpRange rows_of_experts(std::span<const Count> counts, int64_t begin, int64_t end) {
  check_experts(counts, begin, end);
  const int64_t first_row = add_counts(counts, 0, begin, 0);
  const EpRange rows{first_row, add_counts(counts, begin, end, first_row)};
  add_counts(counts, end, static_cast<int64_t>(counts.size()), rows.end);  // checks the others
  return rows;
}

template <class Count>
EpRange rows_of_rank(std::span<const Count> counts, int64_t rank, int64_t num_ranks) {
  if (num_ranks < 1) {
    throw InvalidArgument("num_ranks", text(num_ranks, ", but needs at least 1"));
  }
  if (rank < 0 || rank >= num_ranks) {
    throw InvalidArgument("rank", text(rank, ", but needs 0 <= rank < num_ranks ", num_ranks));
  }
  __extension__ using Wide = __int128;  // the product may leave 64 bits, the quotient does not
  const auto first_expert = [&](int64_t r) {
    return static_cast<int64_t>(static_cast<Wide>(r) * static_cast<Wide>(counts.size()) /
                                num_ranks);
  };
  return rows_of_experts(counts, first_expert(rank), first_expert(rank + 1));
}

}  // namespace

EpRange expert_range(std::span<const int64_t> tokens_per_expert, int64_t expert_begin,
                     int64_t expert_end) {
  return rows_of_experts(tokens_per_expert, expert_begin, expert_end);
}
EpRange expert_range(std::span<const int32_t> tokens_per_expert, int64_t expert_begin,
                     int64_t expert_end) {
  return rows_of_experts(tokens_per_expert, expert_begin, expert_end);
}

EpRange ep_range_of_rank(std::span<const int64_t> tokens_per_expert, int64_t rank,
                         int64_t num_ranks) {
  return rows_of_rank(tokens_per_expert, rank, num_ranks);
}
EpRange ep_range_of_rank(std::span<const int32_t> tokens_per_expert, int64_t rank,
                         int64_t num_ranks) {
  return rows_of_rank(tokens_per_expert, rank, num_ranks);
}

}  // namespace moe
