// One expert: two matrices with SiLU between them, over the rows that came to it.
#pragma once

#include <cmath>
#include <cstdint>

#include "matrix.h"

template <class Real>
Real silu(Real x) {
  return x / (1 + std::exp(-x));
}

template <class Real>
Real silu_slope(Real x) {
  const Real s = 1 / (1 + std::exp(-x));
  return s * (1 + x * (1 - s));
}

// The weights [H, F] and [F, H] of one expert, or their gradients.
template <class T>
struct Expert {
  View<T> up, down;
};

// outputs += silu(rows * up) * down, and before = rows * up, which the way back needs.
template <class Real>
void expert_forward(Expert<const Real> expert, View<const Real> rows, View<Real> before,
                    View<Real> outputs) {
  multiply_add(rows, expert.up, before);
  Matrix<Real> hidden(before.num_rows, before.num_cols);
  for (int64_t i = 0; i < before.num_rows; ++i) {
    for (int64_t j = 0; j < before.num_cols; ++j) hidden(i, j) = silu(before(i, j));
  }
  multiply_add(hidden.view(), expert.down, outputs);
}

// Adds to the gradients of the weights and of the rows.
template <class Real>
void expert_backward(Expert<const Real> expert, View<const Real> rows, View<const Real> before,
                     View<const Real> outputs_grad, Expert<Real> expert_grad,
                     View<Real> rows_grad) {
  Matrix<Real> hidden(before.num_rows, before.num_cols);
  Matrix<Real> before_grad(before.num_rows, before.num_cols);
  multiply_add(outputs_grad, expert.down.transposed(), before_grad.view());
  for (int64_t i = 0; i < before.num_rows; ++i) {
    for (int64_t j = 0; j < before.num_cols; ++j) {
      hidden(i, j) = silu(before(i, j));
      before_grad(i, j) *= silu_slope(before(i, j));
    }
  }
  multiply_add(hidden.view().transposed(), outputs_grad, expert_grad.down);
  multiply_add(rows.transposed(), before_grad.view(), expert_grad.up);
  multiply_add(before_grad.view(), expert.up.transposed(), rows_grad);
}
