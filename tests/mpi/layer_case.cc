#include "mpi/layer_case.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <ostream>
#include <set>

#include "ops/values.h"
#include "ref/dtypes.h"
#include "ref/routing.h"

namespace test {
namespace {

using moe::DType;
using moe::mpi::ExchangeForm;
using moe::mpi::ExpertRows;
using moe::mpi::RoutedTokens;
using moe::mpi::Traffic;

double load(DType dtype, const void* data, int64_t index) {
  if (dtype == DType::kF64) return ref::load_f64(data, index);
  return ref::load_f32(ref_type(dtype), data, index);
}

void store(DType dtype, void* data, int64_t index, double value) {
  if (dtype == DType::kF64) {
    static_cast<double*>(data)[index] = value;
  } else {
    ref::store_f32(ref_type(dtype), data, index, static_cast<float>(value));
  }
}

// A tensor of the exchange; unwritten elements are poison that no sum hides.
struct Tensor {
  Tensor(DType type, int64_t num_elements)
      : dtype(type),
        size(num_elements),
        bytes(static_cast<size_t>(num_elements * moe::dtype_bytes(type)), std::byte{0xff}) {}

  double get(int64_t index) const { return load(dtype, bytes.data(), index); }
  void set(int64_t index, double value) { store(dtype, bytes.data(), index, value); }
  void* data() { return bytes.data(); }
  std::vector<double> values() const {
    std::vector<double> all;
    for (int64_t i = 0; i < size; ++i) all.push_back(get(i));
    return all;
  }

  DType dtype;
  int64_t size;
  std::vector<std::byte> bytes;
};

Tensor part_of(DType dtype, const std::vector<double>& all, int64_t begin, int64_t size) {
  Tensor part(dtype, size);
  for (int64_t i = 0; i < size; ++i) part.set(i, all[static_cast<size_t>(begin + i)]);
  return part;
}

double weight_of(int64_t expert) { return static_cast<double>(1 + expert % 3); }

int64_t tokens_of_rank(Counts counts, int rank, int num_ranks, ref::Random& random) {
  switch (counts) {
    case Counts::kEven:
      return 8;
    case Counts::kUneven:
      return random.below(20);
    case Counts::kOneEmpty:
      return rank == num_ranks / 2 ? 0 : 5 + rank;
    case Counts::kOnlyLast:
      return rank == num_ranks - 1 ? 21 : 0;
    case Counts::kNone:
      break;
  }
  return 0;
}

int32_t choose_expert(const LayerCase& c, ref::Random& random) {
  const int64_t num_experts = c.args.num_experts;
  if (c.choice == Choice::kOneExpert) return static_cast<int32_t>(num_experts - 1);
  if (c.choice == Choice::kUnrouted && random.below(3) == 0) {
    const int32_t outside[] = {-1, static_cast<int32_t>(num_experts), INT32_MAX, INT32_MIN};
    return outside[random.below(4)];
  }
  return static_cast<int32_t>(random.below(num_experts));
}

std::vector<double> random_values(const LayerCase& c, DType dtype, int64_t size, int64_t integers,
                                  ref::Random& random) {
  Tensor values(dtype, size);
  for (int64_t i = 0; i < size; ++i) {
    const double value = c.integers ? static_cast<double>(random.below(2 * integers + 1) - integers)
                                    : 2 * random.unit() - 1;
    values.set(i, value);
  }
  return values.values();
}

bool is_routed(const LayerCase& c, int32_t id) { return id >= 0 && id < c.args.num_experts; }

int64_t owner_of(const LayerCase& c, int64_t expert, int64_t num_ranks) {
  int64_t rank = 0;
  while ((rank + 1) * c.args.num_experts / num_ranks <= expert) ++rank;
  return rank;
}

// The gradients of one rank's experts, and its rows' on the way.
void run_experts(const RoutedTokens& routed, int64_t hidden_size, const Tensor& rows,
                 const Tensor& outputs_grad, Tensor& rows_grad, std::vector<double>& experts_grad) {
  for (const ExpertRows& own : routed.experts()) {
    for (int64_t i = own.begin * hidden_size; i < own.end * hidden_size; ++i) {
      experts_grad[static_cast<size_t>(own.expert)] += rows.get(i) * outputs_grad.get(i);
      rows_grad.set(i, weight_of(own.expert) * outputs_grad.get(i));
    }
  }
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const LayerCase& c) {
  return out << "E " << c.args.num_experts << ", K " << c.args.top_k << ", H " << c.args.hidden_size
             << ", " << dtype_name(c.args.dtype) << ", probs "
             << (c.args.probs_dtype ? dtype_name(*c.args.probs_dtype) : "none") << ", form "
             << static_cast<int>(c.args.form) << ", chunks " << c.args.num_chunks << ", counts "
             << static_cast<int>(c.counts) << ", choice " << static_cast<int>(c.choice) << ", seed "
             << c.seed;
}

int64_t Layer::first_token(int rank) const {
  return std::accumulate(num_tokens.begin(), num_tokens.begin() + rank, int64_t{0});
}

Layer make_layer(const LayerCase& c, int num_ranks) {
  ref::Random random(c.seed);
  Layer layer;
  for (int rank = 0; rank < num_ranks; ++rank) {
    layer.num_tokens.push_back(tokens_of_rank(c.counts, rank, num_ranks, random));
  }
  const int64_t num_tokens = layer.first_token(num_ranks);
  for (int64_t slot = 0; slot < num_tokens * c.args.top_k; ++slot) {
    layer.indices.push_back(choose_expert(c, random));
  }
  const int64_t num_slots = std::ssize(layer.indices);
  layer.probs = c.args.probs_dtype ? random_values(c, *c.args.probs_dtype, num_slots, 1, random)
                                   : std::vector<double>(layer.indices.size(), 1);
  layer.tokens = random_values(c, c.args.dtype, num_tokens * c.args.hidden_size, 3, random);
  layer.out_grad = random_values(c, c.args.dtype, num_tokens * c.args.hidden_size, 1, random);
  return layer;
}

void Sum::add(double term) {
  value += term;
  magnitude += std::abs(term);
}

Answers expected_answers(const LayerCase& c, const Layer& layer) {
  const auto h = static_cast<size_t>(c.args.hidden_size), k = static_cast<size_t>(c.args.top_k);
  Answers a{std::vector<Sum>(layer.tokens.size()), std::vector<Sum>(layer.tokens.size()),
            std::vector<Sum>(layer.probs.size()),
            std::vector<Sum>(static_cast<size_t>(c.args.num_experts))};
  for (size_t slot = 0; slot < layer.indices.size(); ++slot) {
    if (!is_routed(c, layer.indices[slot])) continue;
    const double weight = weight_of(layer.indices[slot]), prob = layer.probs[slot];
    for (size_t i = slot / k * h; i < (slot / k + 1) * h; ++i) {
      const double output = weight * layer.tokens[i], output_grad = prob * layer.out_grad[i];
      a.out[i].add(prob * output);
      a.probs_grad[slot].add(output * layer.out_grad[i]);
      a.experts_grad[static_cast<size_t>(layer.indices[slot])].add(layer.tokens[i] * output_grad);
      a.tokens_grad[i].add(weight * output_grad);
    }
  }
  return a;
}

RankAnswers run_layer(const LayerCase& c, const Layer& layer, MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const int64_t h = c.args.hidden_size, k = c.args.top_k, first = layer.first_token(rank);
  const int64_t num_tokens = layer.num_tokens[static_cast<size_t>(rank)];
  const bool has_probs = c.args.probs_dtype.has_value();
  const DType probs_dtype = c.args.probs_dtype.value_or(DType::kF32);
  Tensor tokens = part_of(c.args.dtype, layer.tokens, first * h, num_tokens * h);
  Tensor out_grad = part_of(c.args.dtype, layer.out_grad, first * h, num_tokens * h);
  Tensor probs = part_of(probs_dtype, layer.probs, first * k, num_tokens * k);

  moe::mpi::ExpertExchange exchange(comm, c.args);
  const RoutedTokens routed = exchange.route(num_tokens, layer.indices.data() + first * k,
                                             has_probs ? probs.data() : nullptr);
  const int64_t num_elements = routed.num_rows() * h;
  Tensor rows(c.args.dtype, num_elements), outputs(c.args.dtype, num_elements);
  Tensor outputs_grad(c.args.dtype, num_elements), rows_grad(c.args.dtype, num_elements);
  Tensor out(c.args.dtype, num_tokens * h), tokens_grad(c.args.dtype, num_tokens * h);
  Tensor probs_grad(probs_dtype, num_tokens * k);
  RankAnswers answers;
  answers.experts_grad.resize(static_cast<size_t>(c.args.num_experts));

  routed.dispatch(tokens.data(), rows.data());
  for (const ExpertRows& own : routed.experts()) {
    for (int64_t i = own.begin * h; i < own.end * h; ++i) {
      outputs.set(i, weight_of(own.expert) * rows.get(i));
    }
  }
  routed.combine(outputs.data(), out.data());
  routed.combine_backward(out_grad.data(), has_probs ? outputs.data() : nullptr,
                          outputs_grad.data(), has_probs ? probs_grad.data() : nullptr);
  run_experts(routed, h, rows, outputs_grad, rows_grad, answers.experts_grad);
  routed.dispatch_backward(rows_grad.data(), tokens_grad.data());

  answers.out = out.values();
  answers.tokens_grad = tokens_grad.values();
  if (has_probs) answers.probs_grad = probs_grad.values();
  answers.traffic = exchange.traffic();
  return answers;
}

Traffic expected_traffic(const LayerCase& c, const Layer& layer, int rank) {
  const auto n = static_cast<int>(layer.num_tokens.size());
  const auto k = static_cast<size_t>(c.args.top_k);
  const int64_t row = c.args.hidden_size * moe::dtype_bytes(c.args.dtype);
  const int64_t prob = c.args.probs_dtype ? moe::dtype_bytes(*c.args.probs_dtype) : 0;
  int64_t sent = 0, received = 0;  // tokens, there
  for (int source = 0, t = 0; source < n; ++source) {
    for (const int64_t end = t + layer.num_tokens[static_cast<size_t>(source)]; t < end; ++t) {
      std::set<int64_t> owners;
      for (size_t slot = static_cast<size_t>(t) * k; slot < static_cast<size_t>(t + 1) * k;
           ++slot) {
        if (is_routed(c, layer.indices[slot])) {
          owners.insert(owner_of(c, layer.indices[slot], n));
        }
      }
      if (c.args.form == ExchangeForm::kAllGather) {
        for (int owner = 0; owner < n; ++owner) owners.insert(owner);
      }
      owners.erase(source);
      if (source == rank) sent += std::ssize(owners);
      if (owners.contains(rank)) ++received;
    }
  }
  const int64_t own = layer.num_tokens[static_cast<size_t>(rank)];
  const int64_t slot_bytes = c.args.top_k * (4 + prob), probs_bytes = c.args.top_k * prob;
  return {.routing = {(n - 1) * (8 + own * slot_bytes),
                      (n - 1) * 8 + (layer.first_token(n) - own) * slot_bytes},
          .rows = {2 * sent * row, 2 * received * row},
          .partials = {2 * received * row, 2 * sent * row},
          .probs_grad = {received * probs_bytes, sent * probs_bytes}};
}

}  // namespace test
