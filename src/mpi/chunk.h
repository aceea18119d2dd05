// Which tokens of a chunk go where: arithmetic on the ids of all ranks' slots, the same on every
// rank, so that no rank has to be told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "moe/mpi.h"
#include "mpi/routing.h"
#include "mpi/row_operators.h"

namespace moe::mpi {

// One chunk, as one rank sees it. M tokens come to it, from its own tokens too.
struct Chunk {
  // There.
  std::vector<int64_t> from;               // [n]: how many of the M tokens are each rank's
  int64_t num_received = 0;                // M
  std::vector<int32_t> indices;            // [M, K]
  std::vector<std::byte> probs;            // [M, K]
  std::vector<int32_t> sorted_indices;     // [M * K]
  std::vector<int64_t> tokens_per_expert;  // [E]
  EpRange window{};

  // Back. Partial sums for this rank's own tokens come from each rank, in rank order.
  int64_t token_begin = 0;        // this rank's tokens of the chunk: of its own
  int64_t num_tokens = 0;         // t
  int64_t width = 0;              // W: from so many ranks at most
  std::vector<int64_t> to;        // [n]: how many each rank sends
  int64_t num_copies = 0;         // their sum
  std::vector<int32_t> ranks;     // [t, W], all-to-all: the ranks a token goes to, or -1
  std::vector<int32_t> partials;  // [t * W]: the place of each one's partial sum

  NamedSlots received_slots(const Routing& routing) const;
  PlacedSlots received_rows(const Routing& routing) const;
  NamedSlots copies() const;
  PlacedSlots returned_rows() const;
};

// The experts [begin, end) of a rank.
struct ExpertsOfRank {
  int64_t begin, end;
};
ExpertsOfRank experts_of_rank(const Routing& routing, int64_t rank);

Chunk make_chunk(const Routing& routing, ExchangeForm form, int64_t chunk, int64_t num_chunks,
                 const Engine& engine);

}  // namespace moe::mpi
