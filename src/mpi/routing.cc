#include "mpi/routing.h"

#include <algorithm>
#include <climits>
#include <numeric>
#include <string>

namespace moe::mpi {
namespace {

// Ids and probs of all chunks are gathered at once: MPI counts the tokens of all ranks in int.
void check_counts(const std::vector<int64_t>& num_tokens) {
  int64_t total = 0;
  for (size_t rank = 0; rank < num_tokens.size(); ++rank) {
    if (num_tokens[rank] < 0) {
      throw InvalidArgument("num_tokens", std::to_string(num_tokens[rank]) + " on rank " +
                                              std::to_string(rank) + ", but needs >= 0");
    }
    if (num_tokens[rank] > INT_MAX - total) {
      throw InvalidArgument("num_tokens", "2^31 or more on all ranks together, but needs fewer");
    }
    total += num_tokens[rank];
  }
}

// Rows and slots of a chunk are counted in int.
void check_chunks(const std::vector<int64_t>& num_tokens, const ExpertExchange::Args& args) {
  int64_t largest = 0;
  for (const int64_t tokens : num_tokens) {
    largest += tokens / args.num_chunks + (tokens % args.num_chunks != 0 ? 1 : 0);
  }
  const int64_t most = INT_MAX / std::max(args.top_k, std::ssize(num_tokens));
  if (largest <= most) return;
  throw InvalidArgument("num_chunks", std::to_string(args.num_chunks) + " make chunks of up to " +
                                          std::to_string(largest) +
                                          " tokens of all ranks, but at most " +
                                          std::to_string(most) + " fit: use more chunks");
}

}  // namespace

Routing gather_routing(const Wire& wire, const ExpertExchange::Args& args, int64_t num_tokens,
                       const int32_t* indices, const void* probs, Traffic::Bytes& traffic) {
  Routing routing{.rank = wire.rank(),
                  .top_k = args.top_k,
                  .num_experts = args.num_experts,
                  .slot_probs_bytes = args.probs_dtype ? dtype_bytes(*args.probs_dtype) : 0,
                  .num_tokens = wire.gather(num_tokens, traffic)};
  check_counts(routing.num_tokens);
  check_chunks(routing.num_tokens, args);
  const int64_t num_slots =
      std::accumulate(routing.num_tokens.begin(), routing.num_tokens.end(), int64_t{0}) *
      args.top_k;
  routing.indices.resize(static_cast<size_t>(num_slots));
  const int64_t indices_bytes = args.top_k * static_cast<int64_t>(sizeof(int32_t));
  wire.all_gather(indices_bytes, indices, routing.num_tokens, routing.indices.data(), traffic)
      .wait();
  if (!args.probs_dtype) return routing;
  routing.probs.resize(static_cast<size_t>(num_slots * routing.slot_probs_bytes));
  const int64_t probs_bytes = args.top_k * routing.slot_probs_bytes;
  wire.all_gather(probs_bytes, probs, routing.num_tokens, routing.probs.data(), traffic).wait();
  return routing;
}

}  // namespace moe::mpi
