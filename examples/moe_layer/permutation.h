// The four operators and the index stage on matrices: what a layer calls.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "matrix.h"
#include "moe/moe.h"

template <class T>
moe::TensorDesc describe(std::initializer_list<int64_t> shape) {
  constexpr moe::DType kDType = std::is_same_v<T, float>    ? moe::DType::kF32
                                : std::is_same_v<T, double> ? moe::DType::kF64
                                                            : moe::DType::kI32;
  return moe::TensorDesc::contiguous(kDType, shape);
}

template <class Real>
moe::TensorDesc describe(const Matrix<Real>& matrix) {
  return describe<Real>({matrix.num_rows(), matrix.num_cols()});
}

template <class Plan>
void run(const Plan& plan, const typename Plan::Pointers& pointers) {
  std::vector<char> workspace(plan.workspace_bytes());
  plan.bind(pointers).run(workspace.data());
}

// Where every slot goes: the same on all ranks.
struct Routing {
  int64_t num_tokens, top_k, num_experts;
  std::vector<int32_t> experts;            // [T, K]
  std::vector<int32_t> sorted_indices;     // [L]: the row of each slot
  std::vector<int32_t> tokens_per_expert;  // [E]
};

inline Routing make_routing(std::vector<int32_t> experts, int64_t top_k, int64_t num_experts) {
  const int64_t num_slots = std::ssize(experts);
  Routing routing{num_slots / top_k,
                  top_k,
                  num_experts,
                  std::move(experts),
                  std::vector<int32_t>(num_slots),
                  std::vector<int32_t>(num_experts)};
  run(moe::SortByExpert::plan({
          .indices = describe<int32_t>({routing.num_tokens, top_k}),
          .num_experts = num_experts,
          .sorted_indices = describe<int32_t>({num_slots}),
          .tokens_per_expert = describe<int32_t>({num_experts}),
      }),
      {.indices = routing.experts.data(),
       .sorted_indices = routing.sorted_indices.data(),
       .tokens_per_expert = routing.tokens_per_expert.data()});
  return routing;
}

// The operators on the window of one rank.
struct Permutation {
  const Routing& routing;
  moe::EpRange window;

  int64_t num_rows() const { return window.end - window.begin; }
  int64_t num_slots() const { return std::ssize(routing.experts); }

  template <class Real>
  Matrix<Real> permute(const Matrix<Real>& tokens) const {
    Matrix<Real> rows(num_rows(), tokens.num_cols());
    std::vector<int32_t> sorted_indices(num_slots());
    run(moe::PermuteWithEp::plan({
            .tokens = describe(tokens),
            .indices = describe<int32_t>({routing.num_tokens, routing.top_k}),
            .ep_range = window,
            .num_experts = routing.num_experts,
            .permuted_tokens = describe(rows),
            .sorted_indices = describe<int32_t>({num_slots()}),
        }),
        {.tokens = tokens.values().data(),
         .indices = routing.experts.data(),
         .permuted_tokens = rows.values().data(),
         .sorted_indices = sorted_indices.data()});
    return rows;
  }

  // This rank's part of the tokens' gradient.
  template <class Real>
  Matrix<Real> permute_backward(const Matrix<Real>& rows_grad) const {
    Matrix<Real> tokens_grad(routing.num_tokens, rows_grad.num_cols());
    run(moe::PermuteWithEpGrad::plan({
            .permuted_tokens_grad = describe(rows_grad),
            .sorted_indices = describe<int32_t>({num_slots()}),
            .top_k = routing.top_k,
            .ep_range = window,
            .tokens_grad = describe(tokens_grad),
        }),
        {.permuted_tokens_grad = rows_grad.values().data(),
         .sorted_indices = routing.sorted_indices.data(),
         .tokens_grad = tokens_grad.values().data()});
    return tokens_grad;
  }

  // This rank's part of the layer's output.
  template <class Real>
  Matrix<Real> unpermute(const Matrix<Real>& rows, const Matrix<Real>& gates) const {
    Matrix<Real> out(routing.num_tokens, rows.num_cols());
    run(moe::UnpermuteWithEp::plan({
            .permuted_tokens = describe(rows),
            .sorted_indices = describe<int32_t>({num_slots()}),
            .probs = describe(gates),
            .top_k = routing.top_k,
            .ep_range = window,
            .out = describe(out),
        }),
        {.permuted_tokens = rows.values().data(),
         .sorted_indices = routing.sorted_indices.data(),
         .probs = gates.values().data(),
         .out = out.values().data()});
    return out;
  }

  template <class Real>
  struct UnpermuteGradients {
    Matrix<Real> rows;   // of this rank's rows
    Matrix<Real> gates;  // this rank's part: zero where a slot is another rank's
  };

  template <class Real>
  UnpermuteGradients<Real> unpermute_backward(const Matrix<Real>& out_grad,
                                              const Matrix<Real>& rows,
                                              const Matrix<Real>& gates) const {
    UnpermuteGradients<Real> grad{{num_rows(), rows.num_cols()},
                                  {routing.num_tokens, routing.top_k}};
    run(moe::UnpermuteWithEpGrad::plan({
            .unpermuted_tokens_grad = describe(out_grad),
            .sorted_indices = describe<int32_t>({num_slots()}),
            .permuted_tokens = describe(rows),
            .probs = describe(gates),
            .top_k = routing.top_k,
            .ep_range = window,
            .permuted_tokens_grad = describe(grad.rows),
            .probs_grad = describe(grad.gates),
        }),
        {.unpermuted_tokens_grad = out_grad.values().data(),
         .sorted_indices = routing.sorted_indices.data(),
         .permuted_tokens = rows.values().data(),
         .probs = gates.values().data(),
         .permuted_tokens_grad = grad.rows.values().data(),
         .probs_grad = grad.gates.values().data()});
    return grad;
  }
};
