// UnpermuteWithEp: checks its arguments, plans, binds.
#include "ops/unpermute_with_ep.h"

#include "core/checks.h"
#include "moe/unpermute_with_ep.h"
#include "ops/arguments.h"

namespace moe {
namespace {

using Args = UnpermuteWithEp::Args;

SlotArgs slots_of(const Args& args) { return {args.sorted_indices, args.probs, args.top_k}; }

// The problem of arguments that passed.
UnpermuteWithEpProblem problem_of(const Args& args, const EpRange& window, int num_threads) {
  UnpermuteWithEpProblem problem{problem_of_slots(slots_of(args), args.permuted_tokens),
                                 stride_of(args.permuted_tokens, 0),
                                 stride_of(args.permuted_tokens, 1, 1)};
  problem.window = window;
  problem.check_indices = args.check_indices;
  problem.num_threads = num_threads;
  return problem;
}

}  // namespace

struct UnpermuteWithEp::State : PlanState<Args, UnpermuteWithEpProblem, UnpermuteWithEpPointers> {};

UnpermuteWithEp UnpermuteWithEp::plan(const Args& args, const Engine& engine) {
  const TensorDesc& tokens = args.permuted_tokens;
  check_float_dtype("permuted_tokens", tokens);
  check_layout("permuted_tokens", tokens, 2, "[rows, hidden_size]");
  const SlotArgs slots = slots_of(args);
  check_slots(slots, "permuted_tokens", tokens);
  const EpRange window = window_of(args.ep_range, slots.num_slots(), tokens.shape[0]);
  check_rows("permuted_tokens", tokens.shape[0], window);
  check_output("out", args.out, {slots.num_tokens(), tokens.shape[1]}, "[num_tokens, hidden_size]",
               "permuted_tokens", tokens);

  return UnpermuteWithEp(make_plan<State>(args, problem_of(args, window, threads_of(engine)),
                                          unpermute_with_ep_kernels(), engine));
}

BoundCall UnpermuteWithEp::bind(const Pointers& pointers) const {
  const Args& args = state_->args;
  const BoundTensor rows{"permuted_tokens", &args.permuted_tokens, pointers.permuted_tokens};
  const BoundTensor indices{"sorted_indices", &args.sorted_indices, pointers.sorted_indices};
  const BoundTensor probs{"probs", given(args.probs), pointers.probs};
  const BoundTensor out{"out", &args.out, pointers.out};
  check_addresses({rows, indices, probs, out});
  check_overlap({out}, {rows, indices, probs});

  return bound_call(*state_, {first_element(rows), first_element(indices), first_element(probs),
                              first_element(out)});
}

size_t UnpermuteWithEp::workspace_bytes() const noexcept { return state_->workspace_bytes; }
std::string UnpermuteWithEp::kernel_name() const { return state_->kernel->name; }
std::string UnpermuteWithEp::explain() const {
  return moe::explain(unpermute_with_ep_kernels(), state_->problem);
}
std::vector<std::string> UnpermuteWithEp::kernel_names() {
  return names_of(unpermute_with_ep_kernels());
}

}  // namespace moe
