// Where the tokens of all ranks go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "moe/mpi.h"
#include "mpi/wire.h"

namespace moe::mpi {

// The tokens of all ranks, one rank's behind another's.
struct Routing {
  int rank = 0;  // this one
  int64_t top_k = 0;
  int64_t num_experts = 0;
  int64_t slot_probs_bytes = 0;     // 0 without probs
  std::vector<int64_t> num_tokens;  // [n]
  std::vector<int32_t> indices{};   // [all tokens, K]
  std::vector<std::byte> probs{};   // [all tokens, K]

  int num_ranks() const { return static_cast<int>(num_tokens.size()); }
};

// Piece `chunk` of `num_chunks` of `num_tokens` tokens begins here.
inline int64_t chunk_begin(int64_t num_tokens, int64_t chunk, int64_t num_chunks) {
  return num_tokens / num_chunks * chunk + num_tokens % num_chunks * chunk / num_chunks;
}

// Collective: from this rank's indices [T, K] and probs [T, K]. Throws the same InvalidArgument on
// every rank where a rank's number of tokens is negative or a chunk too large.
Routing gather_routing(const Wire& wire, const ExpertExchange::Args& args, int64_t num_tokens,
                       const int32_t* indices, const void* probs, Traffic::Bytes& traffic);

}  // namespace moe::mpi
