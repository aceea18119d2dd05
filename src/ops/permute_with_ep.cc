// PermuteWithEp: checks its arguments, plans, binds.
#include "ops/permute_with_ep.h"

#include <algorithm>

#include "core/checks.h"
#include "core/text.h"
#include "moe/permute_with_ep.h"
#include "ops/arguments.h"

namespace moe {
namespace {

using Args = PermuteWithEp::Args;

constexpr const char* kProbsDims = "[num_tokens, top_k], or [num_tokens] for one expert each";

void check_tokens(const Args& args) {
  check_float_dtype("tokens", args.tokens);
  check_layout("tokens", args.tokens, 2, "[num_tokens, hidden_size]");
}

SortByExpertProblem checked_sort(const Args& args, int num_threads) {
  const SortByExpertProblem sort =
      checked_problem(SortByExpert::Args{.indices = args.indices,
                                         .num_experts = args.num_experts,
                                         .sorted_indices = args.sorted_indices,
                                         .tokens_per_expert = args.tokens_per_expert,
                                         .check_indices = args.check_indices},
                      num_threads);
  if (sort.num_tokens != args.tokens.shape[0]) {
    throw InvalidArgument(
        "indices", text("of ", sort.num_tokens, " tokens, but tokens has ", args.tokens.shape[0]));
  }
  return sort;
}

void check_probs(const Args& args, const SortByExpertProblem& sort) {
  if (!args.probs && args.permuted_probs) {
    throw InvalidArgument("permuted_probs", "given, but needs probs, which is not");
  }
  if (!args.probs) return;
  if (!args.permuted_probs) {
    throw NullArgument("permuted_probs", "missing, but needed where probs is given");
  }
  check_float_dtype("probs", *args.probs);
  const bool flat = args.probs->num_dims == 1 && sort.top_k == 1;
  check_layout("probs", *args.probs, flat ? 1 : 2, kProbsDims);
  if (args.probs->shape[0] != sort.num_tokens || (!flat && args.probs->shape[1] != sort.top_k)) {
    throw InvalidArgument("probs", text("shape ", shape_text(*args.probs), ", but needs [",
                                        sort.num_tokens, ", ", sort.top_k, "]: ", kProbsDims));
  }
  check_float64_pair("probs", args.probs->dtype, "tokens", args.tokens.dtype);
}

// Rows of an output with the window's rows or more; the other sizes are given.
void check_permuted(const Args& args) {
  const TensorDesc& tokens = args.permuted_tokens;
  check_output("permuted_tokens", tokens, {tokens.shape[0], args.tokens.shape[1]},
               "[rows, hidden_size]", "tokens", args.tokens);
  if (!args.probs) return;
  check_output("permuted_probs", *args.permuted_probs, {args.permuted_probs->shape[0]}, "[rows]",
               "probs", *args.probs);
}

EpRange checked_window(const Args& args, int64_t num_slots) {
  const int64_t rows = args.permuted_tokens.shape[0];
  const EpRange window = window_of(args.ep_range, num_slots, std::min(rows, num_slots));
  check_rows("permuted_tokens", rows, window);
  if (args.probs) check_rows("permuted_probs", args.permuted_probs->shape[0], window);
  return window;
}

PermuteWithEpProblem problem_of(const Args& args, const SortByExpertProblem& sort,
                                const EpRange& window) {
  PermuteWithEpProblem problem{};
  problem.sort = sort;
  problem.hidden_size = args.tokens.shape[1];
  problem.window = window;
  problem.num_rows = args.permuted_tokens.shape[0];
  problem.tokens_dtype = args.tokens.dtype;
  problem.row_stride = stride_of(args.tokens, 0);
  problem.inner_stride = stride_of(args.tokens, 1, 1);
  problem.has_probs = args.probs.has_value();
  if (problem.has_probs) {
    problem.num_probs_rows = args.permuted_probs->shape[0];
    problem.probs_dtype = args.probs->dtype;
    problem.probs_token_stride = stride_of(*args.probs, 0);
    problem.probs_slot_stride = args.probs->num_dims == 1 ? 0 : stride_of(*args.probs, 1);
  }
  return problem;
}

}  // namespace

struct PermuteWithEp::State : PlanState<Args, PermuteWithEpProblem, PermuteWithEpPointers> {};

PermuteWithEp PermuteWithEp::plan(const Args& args, const Engine& engine) {
  check_tokens(args);
  const SortByExpertProblem sort = checked_sort(args, threads_of(engine));
  check_probs(args, sort);
  check_permuted(args);
  const EpRange window = checked_window(args, sort.num_slots());
  return PermuteWithEp(
      make_plan<State>(args, problem_of(args, sort, window), permute_with_ep_kernels(), engine));
}

BoundCall PermuteWithEp::bind(const Pointers& pointers) const {
  const Args& args = state_->args;
  const BoundTensor tokens{"tokens", &args.tokens, pointers.tokens};
  const BoundTensor indices{"indices", &args.indices, pointers.indices};
  const BoundTensor probs{"probs", given(args.probs), pointers.probs};
  const BoundTensor rows{"permuted_tokens", &args.permuted_tokens, pointers.permuted_tokens};
  const BoundTensor sorted{"sorted_indices", &args.sorted_indices, pointers.sorted_indices};
  const BoundTensor row_probs{"permuted_probs", given(args.permuted_probs),
                              pointers.permuted_probs};
  const BoundTensor counts{"tokens_per_expert", given(args.tokens_per_expert),
                           pointers.tokens_per_expert};
  check_addresses({tokens, indices, probs, rows, sorted, row_probs, counts});
  check_overlap({rows, sorted, row_probs, counts}, {tokens, indices, probs});
  return bound_call(*state_, {first_element(tokens), first_element(indices), first_element(probs),
                              first_element(rows), first_element(sorted), first_element(row_probs),
                              first_element(counts)});
}

size_t PermuteWithEp::workspace_bytes() const noexcept { return state_->workspace_bytes; }
std::string PermuteWithEp::kernel_name() const { return state_->kernel->name; }
std::string PermuteWithEp::explain() const {
  return moe::explain(permute_with_ep_kernels(), state_->problem);
}
std::vector<std::string> PermuteWithEp::kernel_names() {
  return names_of(permute_with_ep_kernels());
}

}  // namespace moe
