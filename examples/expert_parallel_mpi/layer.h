// The layer of ../moe_layer with its experts spread over the ranks of a communicator. A rank has
// tokens of its own, its own experts' weights, and a copy of the router's.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "expert.h"
#include "matrix.h"
#include "moe/mpi.h"
#include "router.h"

struct Sizes {
  int64_t num_experts, top_k, hidden_size, expert_size;
};

// Uniform in [-0.5, 0.5], of the same bits on every machine.
inline Matrix<float> random_matrix(int64_t num_rows, int64_t num_cols, uint32_t seed) {
  std::mt19937 random(seed);
  Matrix<float> matrix(num_rows, num_cols);
  for (float& x : matrix.values()) x = static_cast<float>(random()) / 4294967296.0f - 0.5f;
  return matrix;
}

// One expert's weights, or their gradients.
struct ExpertWeights {
  Matrix<float> up, down;  // [H, F], [F, H]
};

struct Gradients {
  Matrix<float> tokens;                      // of this rank
  Matrix<float> router;                      // this rank's part: the sum over ranks is the whole
  std::map<int64_t, ExpertWeights> experts;  // of this rank's experts that had tokens; whole
};

class Layer {
 public:
  Layer(MPI_Comm comm, const Sizes& sizes, moe::mpi::ExchangeForm form, int64_t num_chunks)
      : sizes_(sizes),
        exchange_(comm, {.num_experts = sizes.num_experts,
                         .top_k = sizes.top_k,
                         .hidden_size = sizes.hidden_size,
                         .form = form,
                         .num_chunks = num_chunks}),
        router_(random_matrix(sizes.hidden_size, sizes.num_experts, 1)) {}

  Matrix<float> forward(const Matrix<float>& tokens) {
    tokens_ = tokens;
    probs_ = router_probs(tokens, router_);
    experts_ = choose_experts(probs_, sizes_.top_k);
    const Matrix<float> gates = gather(probs_, experts_, sizes_.top_k);
    routed_ = exchange_.route(tokens.num_rows(), experts_.data(), gates.values().data());

    rows_ = Matrix<float>(routed_->num_rows(), sizes_.hidden_size);
    routed_->dispatch(tokens.values().data(), rows_.values().data());
    before_ = Matrix<float>(rows_.num_rows(), sizes_.expert_size);
    outputs_ = Matrix<float>(rows_.num_rows(), sizes_.hidden_size);
    for (const auto& own : routed_->experts()) {
      const ExpertWeights& weights = weights_of(own.expert);
      expert_forward<float>({weights.up.view(), weights.down.view()}, rows_of(own, rows_),
                            rows_of(own, before_), rows_of(own, outputs_));
    }
    Matrix<float> out(tokens.num_rows(), sizes_.hidden_size);
    routed_->combine(outputs_.values().data(), out.values().data());
    return out;
  }

  Gradients backward(const Matrix<float>& out_grad) {
    Gradients grad{
        {out_grad.num_rows(), sizes_.hidden_size}, {sizes_.hidden_size, sizes_.num_experts}, {}};
    Matrix<float> outputs_grad(rows_.num_rows(), sizes_.hidden_size), rows_grad = outputs_grad;
    Matrix<float> gates_grad(out_grad.num_rows(), sizes_.top_k);
    routed_->combine_backward(out_grad.values().data(), outputs_.values().data(),
                              outputs_grad.values().data(), gates_grad.values().data());
    for (const auto& own : routed_->experts()) {
      const ExpertWeights& weights = weights_of(own.expert);
      // With several chunks an expert has rows in each.
      ExpertWeights& weights_grad =
          grad.experts.try_emplace(own.expert, zero_weights()).first->second;
      expert_backward<float>({weights.up.view(), weights.down.view()}, rows_of(own, rows_),
                             rows_of(own, before_), rows_of(own, outputs_grad),
                             {weights_grad.up.view(), weights_grad.down.view()},
                             rows_of(own, rows_grad));
    }
    routed_->dispatch_backward(rows_grad.values().data(), grad.tokens.values().data());
    router_backward(tokens_, router_, probs_, scatter(gates_grad, experts_, sizes_.num_experts),
                    grad.router, grad.tokens);
    return grad;
  }

 private:
  static View<float> rows_of(const moe::mpi::ExpertRows& own, Matrix<float>& matrix) {
    return matrix.view().rows(own.begin, own.end);
  }

  ExpertWeights zero_weights() const {
    return {{sizes_.hidden_size, sizes_.expert_size}, {sizes_.expert_size, sizes_.hidden_size}};
  }

  // Made when first used: a rank holds the weights of its own experts only.
  const ExpertWeights& weights_of(int64_t expert) {
    const auto seed = static_cast<uint32_t>(100 + 2 * expert);
    auto& weights = weights_[expert];
    if (!weights) {
      weights = {random_matrix(sizes_.hidden_size, sizes_.expert_size, seed),
                 random_matrix(sizes_.expert_size, sizes_.hidden_size, seed + 1)};
    }
    return *weights;
  }

  Sizes sizes_;
  moe::mpi::ExpertExchange exchange_;
  Matrix<float> router_;
  std::map<int64_t, std::optional<ExpertWeights>> weights_;

  // Between forward and backward.
  std::optional<moe::mpi::RoutedTokens> routed_;
  Matrix<float> tokens_, probs_, rows_, before_, outputs_;
  std::vector<int32_t> experts_;
};
