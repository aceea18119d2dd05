// What moe::mpi moves and takes, against its model (docs/scaling.md):
//
//   mpirun -n 4 bench_exchange [num_tokens per rank [hidden_size [top_k, a power of two]]]
//
// Each line is one form with one number of chunks: bytes of rows that a rank sends in one dispatch,
// measured and expected, and the median time of a forward and of a backward without experts.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "measure.h"
#include "moe/mpi.h"
#include "routing.h"

namespace {

using moe::mpi::ExchangeForm;
using moe::mpi::ExpertExchange;
using moe::mpi::RoutedTokens;

constexpr int64_t kNumExperts = 64;
constexpr int kNumRounds = 7;

struct Job {
  int rank = 0, size = 0;
  int64_t num_tokens = 1024, hidden_size = 2048, top_k = 8;  // tokens of each rank
};

// The expected number of other ranks that own one of a token's experts, of which it names K
// different ones of E, all equally likely.
double expected_copies(int64_t top_k, int num_ranks) {
  const int64_t elsewhere = kNumExperts - kNumExperts / num_ranks;
  double none = 1;  // of one rank's experts is named
  for (int64_t k = 0; k < top_k; ++k) {
    none *=
        std::max(0.0, static_cast<double>(elsewhere - k)) / static_cast<double>(kNumExperts - k);
  }
  return (num_ranks - 1) * (1 - none);
}

double mean_over_ranks(double value, int num_ranks) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return value / num_ranks;
}

template <class Work>
double median_seconds(const Work& work) {
  std::vector<double> seconds;
  for (int round = 0; round < kNumRounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    work();
    MPI_Barrier(MPI_COMM_WORLD);
    seconds.push_back(MPI_Wtime() - start);
  }
  return moe::bench::median(seconds);
}

// Every expert gives back what it got, and the weights of a token's slots add up to 1: the tokens
// come back, and so do their gradients.
void require_same(const std::vector<uint16_t>& got, const std::vector<uint16_t>& want) {
  if (got == want) return;
  std::fprintf(stderr, "wrong answer\n");
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void measure(const Job& job, ExchangeForm form, int64_t num_chunks) {
  const auto routing =
      moe::bench::route("uniform", job.num_tokens * job.size, kNumExperts, job.top_k);
  const int32_t* indices = routing.experts.data() + job.rank * job.num_tokens * job.top_k;
  const std::vector<float> probs(static_cast<size_t>(job.num_tokens * job.top_k),
                                 1.0f / static_cast<float>(job.top_k));
  ExpertExchange exchange(MPI_COMM_WORLD, {.num_experts = kNumExperts,
                                           .top_k = job.top_k,
                                           .hidden_size = job.hidden_size,
                                           .dtype = moe::DType::kBF16,
                                           .form = form,
                                           .num_chunks = num_chunks});
  const RoutedTokens routed = exchange.route(job.num_tokens, indices, probs.data());
  std::vector<uint16_t> tokens(static_cast<size_t>(job.num_tokens * job.hidden_size), 0x3f80);
  std::vector<uint16_t> out(tokens.size());
  std::vector<uint16_t> rows(static_cast<size_t>(routed.num_rows() * job.hidden_size));
  std::vector<uint16_t> rows_grad(rows.size());
  std::vector<float> probs_grad(probs.size());

  routed.dispatch(tokens.data(), rows.data());
  const double sent = mean_over_ranks(static_cast<double>(exchange.traffic().rows.sent), job.size);
  const double forward = median_seconds([&] {
    routed.dispatch(tokens.data(), rows.data());
    routed.combine(rows.data(), out.data());
  });
  require_same(out, tokens);
  std::fill(out.begin(), out.end(), uint16_t{0});
  const double backward = median_seconds([&] {
    routed.combine_backward(tokens.data(), rows.data(), rows_grad.data(), probs_grad.data());
    routed.dispatch_backward(rows_grad.data(), out.data());
  });
  require_same(out, tokens);
  if (job.rank != 0) return;
  const bool gathers = form == ExchangeForm::kAllGather;
  const double copies = gathers ? job.size - 1 : expected_copies(job.top_k, job.size);
  const double model = static_cast<double>(job.num_tokens * job.hidden_size * 2) * copies;
  std::printf("%2d %10s %6lld %10.3f %10.3f %10.1f %10.1f\n", job.size,
              gathers ? "all-gather" : "all-to-all", static_cast<long long>(num_chunks), sent / 1e6,
              model / 1e6, forward * 1e3, backward * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Job job;
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &job.size);
  if (argc > 1) job.num_tokens = std::atoll(argv[1]);
  if (argc > 2) job.hidden_size = std::atoll(argv[2]);
  if (argc > 3) job.top_k = std::atoll(argv[3]);
  if (job.rank == 0)
    std::printf(" n       form chunks    sent MB   model MB forward ms backward ms\n");
  for (const ExchangeForm form : {ExchangeForm::kAllGather, ExchangeForm::kAllToAll}) {
    for (const int64_t num_chunks : {1, 4}) measure(job, form, num_chunks);
  }
  MPI_Finalize();
}
