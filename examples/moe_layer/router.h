// The router: which experts a token goes to, and how much each of them counts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "matrix.h"

// [T, E]: the softmax of tokens * weights, token by token.
template <class Real>
Matrix<Real> router_probs(const Matrix<Real>& tokens, const Matrix<Real>& weights) {
  Matrix<Real> probs(tokens.num_rows(), weights.num_cols());
  multiply_add(tokens.view(), weights.view(), probs.view());
  for (int64_t t = 0; t < probs.num_rows(); ++t) {
    Real* p = &probs(t, 0);
    Real* end = p + probs.num_cols();
    const Real largest = *std::max_element(p, end);
    std::transform(p, end, p, [&](Real logit) { return std::exp(logit - largest); });
    const Real sum = std::accumulate(p, end, Real{0});
    std::transform(p, end, p, [&](Real x) { return x / sum; });
  }
  return probs;
}

// Into the weights' and the tokens' gradients, which it adds to.
template <class Real>
void router_backward(const Matrix<Real>& tokens, const Matrix<Real>& weights,
                     const Matrix<Real>& probs, const Matrix<Real>& probs_grad,
                     Matrix<Real>& weights_grad, Matrix<Real>& tokens_grad) {
  Matrix<Real> logits_grad(probs.num_rows(), probs.num_cols());
  for (int64_t t = 0; t < probs.num_rows(); ++t) {
    Real mean = 0;
    for (int64_t e = 0; e < probs.num_cols(); ++e) mean += probs(t, e) * probs_grad(t, e);
    for (int64_t e = 0; e < probs.num_cols(); ++e) {
      logits_grad(t, e) = probs(t, e) * (probs_grad(t, e) - mean);
    }
  }
  multiply_add(tokens.view().transposed(), logits_grad.view(), weights_grad.view());
  multiply_add(logits_grad.view(), weights.view().transposed(), tokens_grad.view());
}

// [T, K]: the experts with the largest probs of each token, the largest first.
template <class Real>
std::vector<int32_t> choose_experts(const Matrix<Real>& probs, int64_t top_k) {
  std::vector<int32_t> chosen, all(static_cast<size_t>(probs.num_cols()));
  for (int64_t t = 0; t < probs.num_rows(); ++t) {
    std::iota(all.begin(), all.end(), 0);
    std::stable_sort(all.begin(), all.end(),
                     [&](int32_t a, int32_t b) { return probs(t, a) > probs(t, b); });
    chosen.insert(chosen.end(), all.begin(), all.begin() + top_k);
  }
  return chosen;
}

// [T, K]: the probs of the chosen experts, and the way back: a prob that was not chosen has no part
// in the loss.
template <class Real>
Matrix<Real> gather(const Matrix<Real>& probs, const std::vector<int32_t>& experts, int64_t top_k) {
  Matrix<Real> gates(probs.num_rows(), top_k);
  for (int64_t slot = 0; slot < std::ssize(experts); ++slot) {
    gates.values()[slot] = probs(slot / top_k, experts[slot]);
  }
  return gates;
}

template <class Real>
Matrix<Real> scatter(const Matrix<Real>& gates_grad, const std::vector<int32_t>& experts,
                     int64_t num_experts) {
  Matrix<Real> probs_grad(gates_grad.num_rows(), num_experts);
  for (int64_t slot = 0; slot < std::ssize(experts); ++slot) {
    probs_grad(slot / gates_grad.num_cols(), experts[slot]) += gates_grad.values()[slot];
  }
  return probs_grad;
}
