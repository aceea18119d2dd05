// A mixture-of-experts layer forward and backward with its experts on all ranks of an MPI job:
//
//   mpirun -n 4 expert_parallel_mpi
//
// Each rank then computes the layer over all tokens by itself, and the job fails unless both agree.
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

#include "layer.h"

namespace {

using moe::mpi::ExchangeForm;

constexpr Sizes kSizes{.num_experts = 16, .top_k = 4, .hidden_size = 32, .expert_size = 48};
constexpr int64_t kNumChunks = 3;
// Of the largest value: ranks add partial sums in their own order.
constexpr float kTolerance = 1e-5f;

// Ranks have different numbers of tokens.
int64_t tokens_of_rank(int rank) { return 40 + 17 * (rank % 3); }

int64_t first_token(int rank) {
  int64_t first = 0;
  for (int r = 0; r < rank; ++r) first += tokens_of_rank(r);
  return first;
}

Matrix<float> rows(const Matrix<float>& all, int64_t begin, int64_t end) {
  Matrix<float> part(end - begin, all.num_cols());
  std::copy(all.values().begin() + begin * all.num_cols(),
            all.values().begin() + end * all.num_cols(), part.values().begin());
  return part;
}

// Distance from `want`, as a share of its largest value.
float distance(const Matrix<float>& got, const Matrix<float>& want) {
  float largest = 0, worst = 0;
  for (size_t i = 0; i < want.values().size(); ++i) {
    largest = std::max(largest, std::abs(want.values()[i]));
    const float difference = std::abs(got.values()[i] - want.values()[i]);
    worst = difference <= worst ? worst : difference;  // NaN is worst of all
  }
  return largest == 0 ? worst : worst / largest;
}

struct Job {
  int rank = 0, size = 0;
  Matrix<float> tokens, out_grad;  // of all ranks
};

// The worst distance of anything that this rank has from the layer on one rank.
float compare(const Job& job, ExchangeForm form, const Matrix<float>& want_out,
              const Gradients& want) {
  const int64_t begin = first_token(job.rank), end = first_token(job.rank + 1);
  Layer layer(MPI_COMM_WORLD, kSizes, form, kNumChunks);
  const Matrix<float> out = layer.forward(rows(job.tokens, begin, end));
  Gradients grad = layer.backward(rows(job.out_grad, begin, end));
  MPI_Allreduce(MPI_IN_PLACE, grad.router.values().data(),
                static_cast<int>(grad.router.values().size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);

  std::vector<float> distances = {distance(out, rows(want_out, begin, end)),
                                  distance(grad.tokens, rows(want.tokens, begin, end)),
                                  distance(grad.router, want.router)};
  for (const auto& [expert, weights_grad] : grad.experts) {
    distances.push_back(distance(weights_grad.up, want.experts.at(expert).up));
    distances.push_back(distance(weights_grad.down, want.experts.at(expert).down));
  }
  float worst = 0;
  for (const float d : distances) worst = d <= worst ? worst : d;
  return worst;
}

bool agrees(const Job& job, ExchangeForm form, const char* name, const Matrix<float>& out,
            const Gradients& grad) {
  const float mine = compare(job, form, out, grad);
  int good = mine <= kTolerance ? 1 : 0;
  float worst = 0;
  MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Reduce(&mine, &worst, 1, MPI_FLOAT, MPI_MAX, 0, MPI_COMM_WORLD);
  if (job.rank == 0) {
    std::printf("%s on %d ranks: outputs and gradients %s one rank's, at most %.1e apart\n", name,
                job.size, good != 0 ? "are" : "DIFFER from", worst);
  }
  return good != 0;
}

bool run() {
  Job job;
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &job.size);
  const int64_t num_tokens = first_token(job.size);
  job.tokens = random_matrix(num_tokens, kSizes.hidden_size, 7);
  job.out_grad = random_matrix(num_tokens, kSizes.hidden_size, 8);

  Layer alone(MPI_COMM_SELF, kSizes, ExchangeForm::kAllToAll, 1);
  const Matrix<float> out = alone.forward(job.tokens);
  const Gradients grad = alone.backward(job.out_grad);
  const bool gathered = agrees(job, ExchangeForm::kAllGather, "all-gather", out, grad);
  const bool sent = agrees(job, ExchangeForm::kAllToAll, "all-to-all", out, grad);
  return gathered && sent;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bool good = false;
  try {
    good = run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);  // the other ranks may be waiting for this one
  }
  MPI_Finalize();
  return good ? 0 : 1;
}
