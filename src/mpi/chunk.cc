#include "mpi/chunk.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "moe/expert_range.h"

namespace moe::mpi {
namespace {

// [E]
std::vector<int32_t> owners_of_experts(const Routing& routing) {
  std::vector<int32_t> owners(static_cast<size_t>(routing.num_experts));
  for (int rank = 0; rank < routing.num_ranks(); ++rank) {
    const auto [begin, end] = experts_of_rank(routing, rank);
    std::fill(owners.begin() + begin, owners.begin() + end, rank);
  }
  return owners;
}

bool names_expert_of(std::span<const int32_t> ids, ExpertsOfRank own) {
  return std::any_of(ids.begin(), ids.end(),
                     [&](int32_t id) { return id >= own.begin && id < own.end; });
}

// Calls body(rank, token) for the chunk's tokens of all ranks, numbered among all tokens.
template <class Body>
void for_each_token(const Routing& routing, int64_t chunk, int64_t num_chunks, const Body& body) {
  int64_t first = 0;
  for (size_t rank = 0; rank < routing.num_tokens.size(); ++rank) {
    const int64_t num_tokens = routing.num_tokens[rank];
    const int64_t end = first + chunk_begin(num_tokens, chunk + 1, num_chunks);
    for (int64_t t = first + chunk_begin(num_tokens, chunk, num_chunks); t < end; ++t) {
      body(rank, t);
    }
    first += num_tokens;
  }
}

// `from`, and the slots of the tokens that come here.
void receive(Chunk& c, const Routing& routing, ExchangeForm form, int64_t chunk,
             int64_t num_chunks) {
  const ExpertsOfRank own = experts_of_rank(routing, routing.rank);
  const auto k = static_cast<size_t>(routing.top_k);
  const size_t probs_bytes = k * static_cast<size_t>(routing.slot_probs_bytes);
  c.from.resize(routing.num_tokens.size());
  for_each_token(routing, chunk, num_chunks, [&](size_t rank, int64_t t) {
    const std::span ids(routing.indices.data() + static_cast<size_t>(t) * k, k);
    if (form == ExchangeForm::kAllToAll && !names_expert_of(ids, own)) return;
    ++c.from[rank];
    c.indices.insert(c.indices.end(), ids.begin(), ids.end());
    const std::byte* probs = routing.probs.data() + static_cast<size_t>(t) * probs_bytes;
    c.probs.insert(c.probs.end(), probs, probs + probs_bytes);
  });
  c.num_received = std::accumulate(c.from.begin(), c.from.end(), int64_t{0});
}

void sort_received(Chunk& c, const Routing& routing, const Engine& engine) {
  c.sorted_indices.resize(c.indices.size());
  c.tokens_per_expert.resize(static_cast<size_t>(routing.num_experts));
  sort(c.received_slots(routing), c.sorted_indices.data(), c.tokens_per_expert.data(), engine);
  c.window = ep_range_of_rank(std::span<const int64_t>(c.tokens_per_expert), routing.rank,
                              routing.num_ranks());
}

// Every rank gets every token and sends a partial sum of it.
void return_from_all(Chunk& c, int64_t num_ranks) {
  c.width = num_ranks;
  c.to.assign(static_cast<size_t>(num_ranks), c.num_tokens);
  c.partials.resize(static_cast<size_t>(c.num_tokens * num_ranks));
  for (size_t i = 0; i < c.partials.size(); ++i) {
    const auto slot = static_cast<int64_t>(i);
    c.partials[i] = static_cast<int32_t>(slot % num_ranks * c.num_tokens + slot / num_ranks);
  }
}

// The different owners of a token's experts, ascending: its partial sums are added in this order.
void write_owners(std::span<const int32_t> ids, const std::vector<int32_t>& owners,
                  std::span<int32_t> ranks) {
  size_t num_ranks = 0;
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= owners.size()) continue;
    const int32_t owner = owners[static_cast<size_t>(id)];
    const auto found = ranks.begin() + static_cast<std::ptrdiff_t>(num_ranks);
    const auto place = std::lower_bound(ranks.begin(), found, owner);
    if (place != found && *place == owner) continue;
    std::move_backward(place, found, found + 1);
    *place = owner;
    ++num_ranks;
  }
}

void return_from_owners(Chunk& c, const Routing& routing, const Engine& engine) {
  c.width = std::min<int64_t>(routing.top_k, routing.num_ranks());
  const auto width = static_cast<size_t>(c.width), k = static_cast<size_t>(routing.top_k);
  const std::vector<int32_t> owners = owners_of_experts(routing);
  const int64_t first =
      c.token_begin + std::accumulate(routing.num_tokens.begin(),
                                      routing.num_tokens.begin() + routing.rank, int64_t{0});
  c.ranks.assign(static_cast<size_t>(c.num_tokens) * width, -1);
  for (size_t t = 0; t < static_cast<size_t>(c.num_tokens); ++t) {
    write_owners({routing.indices.data() + (static_cast<size_t>(first) + t) * k, k}, owners,
                 {c.ranks.data() + t * width, width});
  }
  c.to.resize(routing.num_tokens.size());
  c.partials.resize(c.ranks.size());
  sort(c.copies(), c.partials.data(), c.to.data(), engine);
}

}  // namespace

ExpertsOfRank experts_of_rank(const Routing& routing, int64_t rank) {
  const int64_t n = routing.num_ranks();
  return {rank * routing.num_experts / n, (rank + 1) * routing.num_experts / n};
}

NamedSlots Chunk::received_slots(const Routing& routing) const {
  return {indices.data(), num_received, routing.top_k, routing.num_experts};
}

PlacedSlots Chunk::received_rows(const Routing& routing) const {
  return {sorted_indices.data(), num_received, routing.top_k, window};
}

NamedSlots Chunk::copies() const {
  return {ranks.data(), num_tokens, width, static_cast<int64_t>(to.size())};
}

PlacedSlots Chunk::returned_rows() const {
  return {partials.data(), num_tokens, width, {0, num_copies}};
}

Chunk make_chunk(const Routing& routing, ExchangeForm form, int64_t chunk, int64_t num_chunks,
                 const Engine& engine) {
  Chunk c;
  receive(c, routing, form, chunk, num_chunks);
  sort_received(c, routing, engine);
  const int64_t own_tokens = routing.num_tokens[static_cast<size_t>(routing.rank)];
  c.token_begin = chunk_begin(own_tokens, chunk, num_chunks);
  c.num_tokens = chunk_begin(own_tokens, chunk + 1, num_chunks) - c.token_begin;
  if (form == ExchangeForm::kAllGather) {
    return_from_all(c, routing.num_ranks());
  } else {
    return_from_owners(c, routing, engine);
  }
  c.num_copies = std::accumulate(c.to.begin(), c.to.end(), int64_t{0});
  return c;
}

}  // namespace moe::mpi
