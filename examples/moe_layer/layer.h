// The layer: router, permute, experts, unpermute, and the way back through all of them, on any
// number of expert-parallel ranks. They run one after another here; on a cluster each is a process
// and every `+=` between ranks an all-reduce.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "expert.h"
#include "matrix.h"
#include "permutation.h"
#include "router.h"

struct Sizes {
  int64_t num_tokens, top_k, num_experts, hidden_size, expert_size;
};

// The layer's weights, or their gradients.
template <class Real>
struct Weights {
  Matrix<Real> router;    // [H, E]
  Matrix<Real> up, down;  // [E * H, F], [E * F, H]: expert under expert

  explicit Weights(const Sizes& s)
      : router(s.hidden_size, s.num_experts),
        up(s.num_experts * s.hidden_size, s.expert_size),
        down(s.num_experts * s.expert_size, s.hidden_size) {}

  Expert<Real> expert(int64_t e) { return expert_of(*this, e); }
  Expert<const Real> expert(int64_t e) const { return expert_of<const Real>(*this, e); }

 private:
  template <class T = Real, class Self>
  static Expert<T> expert_of(Self& self, int64_t e) {
    const int64_t h = self.router.num_rows(), f = self.up.num_cols();
    return {self.up.view().rows(e * h, (e + 1) * h), self.down.view().rows(e * f, (e + 1) * f)};
  }
};

// One rank's share of a step: the experts whose rows lie in its window. Keeps between forward and
// backward what the gradients need.
template <class Real>
class Rank {
 public:
  Rank(const Routing& routing, int64_t rank, int64_t num_ranks)
      : permutation_{routing, moe::ep_range_of_rank(routing.tokens_per_expert, rank, num_ranks)} {}

  Matrix<Real> forward(const Matrix<Real>& tokens, const Matrix<Real>& gates,
                       const Weights<Real>& weights) {
    rows_ = permutation_.permute(tokens);
    before_ = Matrix<Real>(rows_.num_rows(), weights.up.num_cols());
    outputs_ = Matrix<Real>(rows_.num_rows(), rows_.num_cols());
    for_each_expert([&](int64_t e, int64_t begin, int64_t end) {
      expert_forward(weights.expert(e), std::as_const(rows_).view().rows(begin, end),
                     before_.view().rows(begin, end), outputs_.view().rows(begin, end));
    });
    return permutation_.unpermute(outputs_, gates);
  }

  struct Gradients {
    Matrix<Real> tokens, gates;
  };

  // Adds to the gradients of this rank's experts.
  Gradients backward(const Matrix<Real>& out_grad, const Matrix<Real>& gates,
                     const Weights<Real>& weights, Weights<Real>& weights_grad) const {
    const auto grad = permutation_.unpermute_backward(out_grad, outputs_, gates);
    Matrix<Real> rows_grad(rows_.num_rows(), rows_.num_cols());
    for_each_expert([&](int64_t e, int64_t begin, int64_t end) {
      expert_backward(weights.expert(e), rows_.view().rows(begin, end),
                      before_.view().rows(begin, end), grad.rows.view().rows(begin, end),
                      weights_grad.expert(e), rows_grad.view().rows(begin, end));
    });
    return {permutation_.permute_backward(rows_grad), grad.gates};
  }

 private:
  // Calls body(e, begin, end) for each expert's rows in the window, numbered from the window's
  // first.
  template <class Body>
  void for_each_expert(const Body& body) const {
    const auto [begin, end] = permutation_.window;
    for (int64_t e = 0; e < permutation_.routing.num_experts; ++e) {
      const moe::EpRange own = moe::expert_range(permutation_.routing.tokens_per_expert, e, e + 1);
      const int64_t first = std::max(own.begin, begin), last = std::min(own.end, end);
      if (first < last) body(e, first - begin, last - begin);
    }
  }

  Permutation permutation_;
  Matrix<Real> rows_, before_, outputs_;
};

// The layer over all ranks.
template <class Real>
class Layer {
 public:
  Layer(const Weights<Real>& weights, int64_t num_ranks)
      : weights_(weights), num_ranks_(num_ranks) {}
  Layer(const Layer&) = delete;  // its ranks look at its routing

  // The experts that this layer's router would choose for the tokens.
  std::vector<int32_t> route(const Matrix<Real>& tokens, int64_t top_k) const {
    return choose_experts(router_probs(tokens, weights_.router), top_k);
  }

  Matrix<Real> forward(const Matrix<Real>& tokens, const std::vector<int32_t>& experts) {
    routing_ =
        make_routing(experts, std::ssize(experts) / tokens.num_rows(), weights_.router.num_cols());
    tokens_ = tokens;
    probs_ = router_probs(tokens, weights_.router);
    gates_ = gather(probs_, experts, routing_.top_k);
    ranks_.clear();
    Matrix<Real> out(tokens.num_rows(), tokens.num_cols());
    for (int64_t r = 0; r < num_ranks_; ++r) {
      out += ranks_.emplace_back(routing_, r, num_ranks_).forward(tokens, gates_, weights_);
    }
    return out;
  }

  // Adds to the weights' gradients; gives those of the tokens.
  Matrix<Real> backward(const Matrix<Real>& out_grad, Weights<Real>& weights_grad) const {
    Matrix<Real> tokens_grad(out_grad.num_rows(), out_grad.num_cols());
    Matrix<Real> gates_grad(gates_.num_rows(), gates_.num_cols());
    for (const Rank<Real>& rank : ranks_) {
      const auto part = rank.backward(out_grad, gates_, weights_, weights_grad);
      tokens_grad += part.tokens;
      gates_grad += part.gates;
    }
    router_backward(tokens_, weights_.router, probs_,
                    scatter(gates_grad, routing_.experts, routing_.num_experts),
                    weights_grad.router, tokens_grad);
    return tokens_grad;
  }

 private:
  const Weights<Real>& weights_;
  int64_t num_ranks_;
  Routing routing_;
  Matrix<Real> tokens_, probs_, gates_;
  std::vector<Rank<Real>> ranks_;
};
