// A layer over all ranks, small enough for every rank to know all of it: expert e multiplies its
// rows by w[e] = 1 + e mod 3. What each rank makes of its part is compared with a naive computation
// of the whole that exchanges nothing.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "moe/mpi.h"

namespace test {

enum class Counts { kEven, kUneven, kOneEmpty, kOnlyLast, kNone };
enum class Choice { kRandom, kOneExpert, kUnrouted };

struct LayerCase {
  moe::mpi::ExpertExchange::Args args;
  Counts counts = Counts::kUneven;
  Choice choice = Choice::kRandom;
  bool integers = true;  // small ones, whose sums are exact in every dtype
  uint64_t seed = 1;
};

std::ostream& operator<<(std::ostream& out, const LayerCase& layer);

// All values as doubles; what the exchange gets is converted to its dtype and back first.
struct Layer {
  std::vector<int64_t> num_tokens;  // [n]
  std::vector<int32_t> indices;     // [T, K]
  std::vector<double> probs;        // [T, K]
  std::vector<double> tokens;       // [T, H]
  std::vector<double> out_grad;     // [T, H]

  int64_t first_token(int rank) const;  // of all
};

Layer make_layer(const LayerCase& layer_case, int num_ranks);

// A sum and what it is made of.
struct Sum {
  double value = 0;
  double magnitude = 0;
  void add(double term);
};

struct Answers {
  std::vector<Sum> out, tokens_grad;  // [T, H]
  std::vector<Sum> probs_grad;        // [T, K]
  std::vector<Sum> experts_grad;      // [E]
};

Answers expected_answers(const LayerCase& layer_case, const Layer& layer);

// What one rank makes of its part, through the exchange.
struct RankAnswers {
  std::vector<double> out, tokens_grad, probs_grad;  // of its tokens
  std::vector<double> experts_grad;                  // [E], zero for other ranks' experts
  moe::mpi::Traffic traffic;
};

RankAnswers run_layer(const LayerCase& layer_case, const Layer& layer, MPI_Comm comm);

// Payload bytes by the model of docs/scaling.md.
moe::mpi::Traffic expected_traffic(const LayerCase& layer_case, const Layer& layer, int rank);

}  // namespace test
