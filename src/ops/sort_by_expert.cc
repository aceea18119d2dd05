// SortByExpert: checks its arguments, plans, binds.
#include "ops/sort_by_expert.h"

#include "core/checks.h"
#include "core/text.h"
#include "ops/arguments.h"

namespace moe {
namespace {

using Args = SortByExpert::Args;

constexpr int64_t kMaxExperts = int64_t{1} << 31;

void check_indices(const TensorDesc& indices) {
  check_index_dtype("indices", indices);
  const bool flat = indices.num_dims == 1;
  check_layout("indices", indices, flat ? 1 : 2,
               flat ? "[num_tokens]" : "[num_tokens, top_k], or [num_tokens]");
  if (flat || indices.shape[1] > 0) return;
  throw InvalidArgument(
      "indices", text("shape ", shape_text(indices), ", but needs at least one expert per token"));
}

void check_num_experts(const Args& args) {
  if (args.num_experts && (*args.num_experts < 0 || *args.num_experts > kMaxExperts)) {
    throw InvalidArgument("num_experts", text(*args.num_experts, ", but needs 0 to 2^31"));
  }
  if (args.tokens_per_expert && !args.num_experts) {
    throw InvalidArgument("tokens_per_expert", "given, but needs num_experts, which is not");
  }
}

// An output that holds numbers up to that of the slots.
void check_integers(const char* name, const TensorDesc& desc, int64_t size, const char* dims,
                    int64_t num_slots) {
  check_index_dtype(name, desc);
  check_output_layout(name, desc, {size}, dims);
  if (desc.dtype == DType::kI32 && num_slots > INT32_MAX) {
    throw InvalidArgument(name, text("dtype int32, but ", num_slots, " slots need int64"));
  }
}

SortByExpertProblem problem_of(const Args& args, int num_threads) {
  const TensorDesc& indices = args.indices;
  const bool flat = indices.num_dims == 1;
  SortByExpertProblem problem{};
  problem.num_tokens = indices.shape[0];
  problem.top_k = flat ? 1 : indices.shape[1];
  problem.token_stride = stride_of(indices, 0);
  // With one expert per token the next slot is the next token.
  problem.slot_stride = problem.top_k == 1 ? problem.token_stride : indices.strides[1];
  problem.num_experts = args.num_experts.value_or(kMaxExperts);
  problem.is_bounded = args.num_experts.has_value();
  problem.index_dtype = indices.dtype;
  problem.sorted_dtype = args.sorted_indices.dtype;
  problem.has_counts = args.tokens_per_expert.has_value();
  if (problem.has_counts) problem.counts_dtype = args.tokens_per_expert->dtype;
  problem.check_indices = args.check_indices;
  problem.num_threads = num_threads;
  return problem;
}

}  // namespace

SortByExpertProblem checked_problem(const Args& args, int num_threads) {
  check_indices(args.indices);
  check_num_experts(args);
  const int64_t num_slots = num_elements(args.indices);
  check_num_slots("indices", num_slots);
  check_integers("sorted_indices", args.sorted_indices, num_slots, "[num_tokens * top_k]",
                 num_slots);
  if (args.tokens_per_expert) {
    check_integers("tokens_per_expert", *args.tokens_per_expert, *args.num_experts, "[num_experts]",
                   num_slots);
  }
  return problem_of(args, num_threads);
}

struct SortByExpert::State : PlanState<Args, SortByExpertProblem, SortByExpertPointers> {};

SortByExpert SortByExpert::plan(const Args& args, const Engine& engine) {
  return SortByExpert(make_plan<State>(args, checked_problem(args, threads_of(engine)),
                                       sort_by_expert_kernels(), engine));
}

BoundCall SortByExpert::bind(const Pointers& pointers) const {
  const Args& args = state_->args;
  const BoundTensor indices{"indices", &args.indices, pointers.indices};
  const BoundTensor sorted{"sorted_indices", &args.sorted_indices, pointers.sorted_indices};
  const BoundTensor counts{"tokens_per_expert", given(args.tokens_per_expert),
                           pointers.tokens_per_expert};
  check_addresses({indices, sorted, counts});
  check_overlap({sorted, counts}, {indices});
  return bound_call(*state_,
                    {first_element(indices), first_element(sorted), first_element(counts)});
}

size_t SortByExpert::workspace_bytes() const noexcept { return state_->workspace_bytes; }
std::string SortByExpert::kernel_name() const { return state_->kernel->name; }
std::string SortByExpert::explain() const {
  return moe::explain(sort_by_expert_kernels(), state_->problem);
}
std::vector<std::string> SortByExpert::kernel_names() { return names_of(sort_by_expert_kernels()); }

}  // namespace moe
