// UnpermuteWithEpGrad: checks its arguments, plans, binds.
#include "ops/unpermute_with_ep_grad.h"

#include <algorithm>

#include "core/checks.h"
#include "core/text.h"
#include "moe/unpermute_with_ep_grad.h"
#include "ops/arguments.h"

namespace moe {
namespace {

using Args = UnpermuteWithEpGrad::Args;

SlotArgs slots_of(const Args& args) { return {args.sorted_indices, args.probs, args.top_k}; }

// Without a range, the rows of the output that a slot can name.
EpRange window_of(const Args& args) {
  const int64_t num_slots = args.sorted_indices.shape[0];
  return moe::window_of(args.ep_range, num_slots,
                        std::min(args.permuted_tokens_grad.shape[0], num_slots));
}

void check_permuted_tokens(const Args& args, const EpRange& window) {
  const TensorDesc& tokens = args.unpermuted_tokens_grad;
  const TensorDesc& permuted = *args.permuted_tokens;
  if (permuted.dtype != tokens.dtype) {
    throw InvalidArgument("permuted_tokens",
                          text("dtype ", dtype_name(permuted.dtype), ", but needs ",
                               dtype_name(tokens.dtype), ", the dtype of unpermuted_tokens_grad"));
  }
  check_layout("permuted_tokens", permuted, 2, "[rows, hidden_size]");
  if (permuted.shape[1] != tokens.shape[1]) {
    throw InvalidArgument("permuted_tokens",
                          text("hidden_size ", permuted.shape[1], ", but needs ", tokens.shape[1],
                               ", that of unpermuted_tokens_grad"));
  }
  check_rows("permuted_tokens", permuted.shape[0], window);
}

void check_inputs(const Args& args) {
  const TensorDesc& tokens = args.unpermuted_tokens_grad;
  check_float_dtype("unpermuted_tokens_grad", tokens);
  check_layout("unpermuted_tokens_grad", tokens, 2, "[num_tokens, hidden_size]");
  const SlotArgs slots = slots_of(args);
  check_slots(slots, "unpermuted_tokens_grad", tokens);
  if (tokens.shape[0] == slots.num_tokens()) return;
  throw InvalidArgument("unpermuted_tokens_grad",
                        text(tokens.shape[0], " tokens, but needs ", slots.num_tokens(), ": ",
                             slots.num_slots(), " slots of sorted_indices, top_k ", args.top_k));
}

void check_rows_output(const Args& args) {
  // As many rows as permuted_tokens has; where that is absent, any number.
  const TensorDesc& like = args.permuted_tokens ? *args.permuted_tokens : args.permuted_tokens_grad;
  check_output("permuted_tokens_grad", args.permuted_tokens_grad,
               {like.shape[0], args.unpermuted_tokens_grad.shape[1]}, "[rows, hidden_size]",
               "unpermuted_tokens_grad", args.unpermuted_tokens_grad);
}

void check_probs_output(const Args& args) {
  if (!args.probs_grad) return;
  if (!args.probs) throw InvalidArgument("probs_grad", "given, but needs probs, which is not");
  if (!args.permuted_tokens) {
    throw NullArgument("permuted_tokens", "missing, but needed where probs_grad is given");
  }
  check_output("probs_grad", *args.probs_grad, {slots_of(args).num_tokens(), args.top_k},
               "[num_tokens, top_k]", "probs", *args.probs);
}

// The problem of arguments that passed.
UnpermuteWithEpGradProblem problem_of(const Args& args, const EpRange& window, int num_threads) {
  const TensorDesc& tokens = args.unpermuted_tokens_grad;
  UnpermuteWithEpGradProblem problem{};
  static_cast<UnpermuteProblem&>(problem) = problem_of_slots(slots_of(args), tokens);
  problem.window = window;
  problem.check_indices = args.check_indices;
  problem.num_threads = num_threads;
  problem.token_stride = stride_of(tokens, 0);
  problem.token_inner_stride = stride_of(tokens, 1, 1);
  problem.row_inner_stride = 1;
  if (args.permuted_tokens) {
    problem.row_stride = stride_of(*args.permuted_tokens, 0);
    problem.row_inner_stride = stride_of(*args.permuted_tokens, 1, 1);
  }
  problem.num_output_rows = args.permuted_tokens_grad.shape[0];
  problem.has_probs_grad = args.probs_grad.has_value();
  return problem;
}

}  // namespace

struct UnpermuteWithEpGrad::State
    : PlanState<Args, UnpermuteWithEpGradProblem, UnpermuteWithEpGradPointers> {};

UnpermuteWithEpGrad UnpermuteWithEpGrad::plan(const Args& args, const Engine& engine) {
  check_inputs(args);
  // The window may depend on the output's rows, so its layout comes first.
  check_layout("permuted_tokens_grad", args.permuted_tokens_grad, 2, "[rows, hidden_size]");
  const EpRange window = window_of(args);
  if (args.permuted_tokens) check_permuted_tokens(args, window);
  check_rows_output(args);
  check_rows("permuted_tokens_grad", args.permuted_tokens_grad.shape[0], window);
  check_probs_output(args);

  return UnpermuteWithEpGrad(make_plan<State>(args, problem_of(args, window, threads_of(engine)),
                                              unpermute_with_ep_grad_kernels(), engine));
}

BoundCall UnpermuteWithEpGrad::bind(const Pointers& pointers) const {
  const Args& args = state_->args;
  const BoundTensor tokens{"unpermuted_tokens_grad", &args.unpermuted_tokens_grad,
                           pointers.unpermuted_tokens_grad};
  const BoundTensor indices{"sorted_indices", &args.sorted_indices, pointers.sorted_indices};
  const BoundTensor permuted{"permuted_tokens", given(args.permuted_tokens),
                             pointers.permuted_tokens};
  const BoundTensor probs{"probs", given(args.probs), pointers.probs};
  const BoundTensor rows_grad{"permuted_tokens_grad", &args.permuted_tokens_grad,
                              pointers.permuted_tokens_grad};
  const BoundTensor probs_grad{"probs_grad", given(args.probs_grad), pointers.probs_grad};
  check_addresses({tokens, indices, permuted, probs, rows_grad, probs_grad});
  check_overlap({rows_grad, probs_grad}, {tokens, indices, permuted, probs});

  return bound_call(*state_,
                    {first_element(tokens), first_element(indices), first_element(permuted),
                     first_element(probs), first_element(rows_grad), first_element(probs_grad)});
}

size_t UnpermuteWithEpGrad::workspace_bytes() const noexcept { return state_->workspace_bytes; }
std::string UnpermuteWithEpGrad::kernel_name() const { return state_->kernel->name; }
std::string UnpermuteWithEpGrad::explain() const {
  return moe::explain(unpermute_with_ep_grad_kernels(), state_->problem);
}
std::vector<std::string> UnpermuteWithEpGrad::kernel_names() {
  return names_of(unpermute_with_ep_grad_kernels());
}

}  // namespace moe
