// PermuteWithEpGrad: checks its arguments, plans, binds.
#include "ops/permute_with_ep_grad.h"

#include "core/checks.h"
#include "moe/permute_with_ep_grad.h"
#include "ops/arguments.h"

namespace moe {
namespace {

using Args = PermuteWithEpGrad::Args;

void check_inputs(const Args& args) {
  check_float_dtype("permuted_tokens_grad", args.permuted_tokens_grad);
  check_layout("permuted_tokens_grad", args.permuted_tokens_grad, 2, "[rows, hidden_size]");
  check_index_dtype("sorted_indices", args.sorted_indices);
  check_layout("sorted_indices", args.sorted_indices, 1, "[num_tokens * top_k]");
  if (!args.permuted_probs_grad) return;
  check_float_dtype("permuted_probs_grad", *args.permuted_probs_grad);
  check_layout("permuted_probs_grad", *args.permuted_probs_grad, 1, "[rows]");
  check_float64_pair("permuted_probs_grad", args.permuted_probs_grad->dtype, "permuted_tokens_grad",
                     args.permuted_tokens_grad.dtype);
}

void check_outputs(const Args& args) {
  const int64_t num_tokens = args.sorted_indices.shape[0] / args.top_k;
  check_output("tokens_grad", args.tokens_grad, {num_tokens, args.permuted_tokens_grad.shape[1]},
               "[num_tokens, hidden_size]", "permuted_tokens_grad", args.permuted_tokens_grad);
  if (!args.permuted_probs_grad && args.probs_grad) {
    throw InvalidArgument("probs_grad", "given, but needs permuted_probs_grad, which is not");
  }
  if (args.permuted_probs_grad && !args.probs_grad) {
    throw NullArgument("probs_grad", "missing, but needed where permuted_probs_grad is given");
  }
  if (!args.probs_grad) return;
  check_output("probs_grad", *args.probs_grad, {num_tokens, args.top_k}, "[num_tokens, top_k]",
               "permuted_probs_grad", *args.permuted_probs_grad);
}

// The problem of arguments that passed.
PermuteWithEpGradProblem problem_of(const Args& args, const EpRange& window, int num_threads) {
  const TensorDesc& rows = args.permuted_tokens_grad;
  PermuteWithEpGradProblem problem{};
  problem.num_tokens = args.tokens_grad.shape[0];
  problem.top_k = args.top_k;
  problem.hidden_size = rows.shape[1];
  problem.window = window;
  problem.tokens_dtype = rows.dtype;
  problem.index_dtype = args.sorted_indices.dtype;
  problem.row_stride = stride_of(rows, 0);
  problem.inner_stride = stride_of(rows, 1, 1);
  problem.index_stride = stride_of(args.sorted_indices, 0);
  problem.has_probs = args.permuted_probs_grad.has_value();
  if (problem.has_probs) {
    problem.probs_dtype = args.permuted_probs_grad->dtype;
    problem.probs_stride = stride_of(*args.permuted_probs_grad, 0);
  }
  problem.check_indices = args.check_indices;
  problem.num_threads = num_threads;
  return problem;
}

}  // namespace

struct PermuteWithEpGrad::State
    : PlanState<Args, PermuteWithEpGradProblem, PermuteWithEpGradPointers> {};

PermuteWithEpGrad PermuteWithEpGrad::plan(const Args& args, const Engine& engine) {
  check_inputs(args);
  const int64_t num_slots = args.sorted_indices.shape[0];
  const int64_t rows = args.permuted_tokens_grad.shape[0];
  check_top_k(args.top_k, "sorted_indices", num_slots);
  const EpRange window = window_of(args.ep_range, num_slots, rows);
  check_rows("permuted_tokens_grad", rows, window);
  if (args.permuted_probs_grad) {
    check_rows("permuted_probs_grad", args.permuted_probs_grad->shape[0], window);
  }
  check_outputs(args);

  return PermuteWithEpGrad(make_plan<State>(args, problem_of(args, window, threads_of(engine)),
                                            permute_with_ep_grad_kernels(), engine));
}

BoundCall PermuteWithEpGrad::bind(const Pointers& pointers) const {
  const Args& args = state_->args;
  const BoundTensor rows{"permuted_tokens_grad", &args.permuted_tokens_grad,
                         pointers.permuted_tokens_grad};
  const BoundTensor indices{"sorted_indices", &args.sorted_indices, pointers.sorted_indices};
  const BoundTensor probs{"permuted_probs_grad", given(args.permuted_probs_grad),
                          pointers.permuted_probs_grad};
  const BoundTensor tokens_grad{"tokens_grad", &args.tokens_grad, pointers.tokens_grad};
  const BoundTensor probs_grad{"probs_grad", given(args.probs_grad), pointers.probs_grad};
  check_addresses({rows, indices, probs, tokens_grad, probs_grad});
  check_overlap({tokens_grad, probs_grad}, {rows, indices, probs});

  return bound_call(*state_, {first_element(rows), first_element(indices), first_element(probs),
                              first_element(tokens_grad), first_element(probs_grad)});
}

size_t PermuteWithEpGrad::workspace_bytes() const noexcept { return state_->workspace_bytes; }
std::string PermuteWithEpGrad::kernel_name() const { return state_->kernel->name; }
std::string PermuteWithEpGrad::explain() const {
  return moe::explain(permute_with_ep_grad_kernels(), state_->problem);
}
std::vector<std::string> PermuteWithEpGrad::kernel_names() {
  return names_of(permute_with_ep_grad_kernels());
}

}  // namespace moe
