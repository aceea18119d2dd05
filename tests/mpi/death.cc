// The last rank dies in the middle of an exchange: MPI must end the job, and no rank may come to
// the end.
#include <mpi.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "moe/mpi.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  constexpr int64_t kTokens = 64, kHidden = 32;
  moe::mpi::ExpertExchange exchange(MPI_COMM_WORLD, {.num_experts = size, .hidden_size = kHidden});
  const std::vector<int32_t> indices(kTokens, size - 1);
  const std::vector<float> probs(kTokens, 1.0f), tokens(kTokens * kHidden, 1.0f);
  const moe::mpi::RoutedTokens routed = exchange.route(kTokens, indices.data(), probs.data());
  std::vector<float> rows(static_cast<size_t>(routed.num_rows() * kHidden)), out(tokens.size());
  routed.dispatch(tokens.data(), rows.data());
  std::puts("dispatched");
  std::fflush(stdout);
  if (rank == size - 1) std::raise(SIGKILL);
  routed.combine(rows.data(), out.data());
  std::puts("came to the end");
  MPI_Finalize();
}
