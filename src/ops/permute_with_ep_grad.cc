// PermuteWithEpGrad: checks its arguments, plans, binds.
#include "ops/permute_with_ep_grad.h"

#include "core/checks.h"
#include "core/text.h"
#include "moe/permute_with_ep_grad.h"

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
  const DType tokens = args.permuted_tokens_grad.dtype, probs = args.permuted_probs_grad->dtype;
  if ((tokens == DType::kF64) != (probs == DType::kF64)) {
    throw InvalidArgument("permuted_probs_grad",
                          text("dtype ", dtype_name(probs), " beside ", dtype_name(tokens),
                               " permuted_tokens_grad, but float64 goes with float64 only"));
  }
}

void check_top_k(const Args& args) {
  const int64_t num_slots = args.sorted_indices.shape[0];
  if (args.top_k < 1) {
    throw InvalidArgument("top_k", text(args.top_k, ", but needs at least 1"));
  }
  if (num_slots % args.top_k != 0) {
    throw InvalidArgument("sorted_indices",
                          text(num_slots, " slots, but needs a multiple of top_k ", args.top_k));
  }
}

// The window of global rows: the range, or all rows that there are.
EpRange window_of(const Args& args) {
  if (!args.ep_range) return {0, args.permuted_tokens_grad.shape[0]};
  const auto [begin, end] = *args.ep_range;
  const int64_t num_slots = args.sorted_indices.shape[0];
  if (begin < 0 || end < begin || end > num_slots) {
    throw InvalidArgument(
        "ep_range", text("[", begin, ", ", end, "), but needs 0 <= begin <= end <= ", num_slots,
                         ", the number of slots"));
  }
  return *args.ep_range;
}

void check_rows(const char* name, int64_t rows, const EpRange& window) {
  const int64_t needed = window.end - window.begin;
  if (rows >= needed) return;
  throw InvalidArgument(name, text(rows, " rows, but the range [", window.begin, ", ", window.end,
                                   ") needs at least ", needed));
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
  // A dimension of size 1 is never stepped over: its stride may hold anything.
  problem.row_stride = rows.shape[0] == 1 ? 0 : rows.strides[0];
  problem.inner_stride = rows.shape[1] == 1 ? 1 : rows.strides[1];
  problem.index_stride = args.sorted_indices.shape[0] == 1 ? 0 : args.sorted_indices.strides[0];
  problem.has_probs = args.permuted_probs_grad.has_value();
  if (problem.has_probs) {
    const TensorDesc& probs = *args.permuted_probs_grad;
    problem.probs_dtype = probs.dtype;
    problem.probs_stride = probs.shape[0] == 1 ? 0 : probs.strides[0];
  }
  problem.check_indices = args.check_indices;
  problem.num_threads = num_threads;
  return problem;
}

int threads_of(const Engine& engine) {
  if (engine.num_threads < 0) {
    throw InvalidArgument("num_threads", text(engine.num_threads, ", but needs 0 or more"));
  }
  return engine.num_threads ? engine.num_threads : num_threads();
}

}  // namespace

struct PermuteWithEpGrad::State : PlanState<PermuteWithEpGradProblem, PermuteWithEpGradPointers> {
  Args args;
};

PermuteWithEpGrad PermuteWithEpGrad::plan(const Args& args, const Engine& engine) {
  check_inputs(args);
  check_top_k(args);
  const EpRange window = window_of(args);
  check_rows("permuted_tokens_grad", args.permuted_tokens_grad.shape[0], window);
  if (args.permuted_probs_grad) {
    check_rows("permuted_probs_grad", args.permuted_probs_grad->shape[0], window);
  }
  check_outputs(args);

  auto state = std::make_shared<State>();
  state->args = args;
  state->problem = problem_of(args, window, threads_of(engine));
  state->kernel = &choose(permute_with_ep_grad_kernels(), state->problem, engine);
  state->workspace_bytes = state->kernel->workspace_bytes(state->problem);
  return PermuteWithEpGrad(std::move(state));
}

BoundCall PermuteWithEpGrad::bind(const Pointers& pointers) const {
  const Args& args = state_->args;
  const auto given = [](const std::optional<TensorDesc>& desc) { return desc ? &*desc : nullptr; };
  const BoundTensor rows{"permuted_tokens_grad", &args.permuted_tokens_grad,
                         pointers.permuted_tokens_grad};
  const BoundTensor indices{"sorted_indices", &args.sorted_indices, pointers.sorted_indices};
  const BoundTensor probs{"permuted_probs_grad", given(args.permuted_probs_grad),
                          pointers.permuted_probs_grad};
  const BoundTensor tokens_grad{"tokens_grad", &args.tokens_grad, pointers.tokens_grad};
  const BoundTensor probs_grad{"probs_grad", given(args.probs_grad), pointers.probs_grad};
  check_addresses({rows, indices, probs, tokens_grad, probs_grad});
  check_overlap({tokens_grad, probs_grad}, {rows, indices, probs});

  const PermuteWithEpGradPointers first{first_element(rows), first_element(indices),
                                        first_element(probs), first_element(tokens_grad),
                                        first_element(probs_grad)};
  return BoundCall(
      std::make_shared<KernelCall<PermuteWithEpGradProblem, PermuteWithEpGradPointers>>(state_,
                                                                                        first));
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
