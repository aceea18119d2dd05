#include <algorithm>

#include "operators/operator.h"

namespace moe::tools {
namespace {

// A window whose end lies before its begin is the library's to reject, not ours to allocate for.
int64_t rows_of(const EpRange& range) { return std::max<int64_t>(range.end - range.begin, 0); }

Sizes sizes_of(const TensorDesc& tokens, const TensorDesc& indices, const Settings& settings) {
  Sizes sizes;
  sizes.num_tokens = indices.num_dims > 0 ? indices.shape[0] : 0;
  sizes.top_k = indices.num_dims > 1 ? indices.shape[1] : 1;
  check_top_k(settings, sizes.top_k, "indices");
  sizes.hidden_size = tokens.num_dims > 1 ? tokens.shape[1] : 0;
  sizes.dtype = tokens.dtype;
  sizes.num_rows =
      settings.rows.value_or(settings.ep_range ? rows_of(*settings.ep_range) : sizes.num_slots());
  sizes.window = window_of(settings, sizes);
  return sizes;
}

PermuteWithEp::Args args_of(const Operands& operands, const Settings& settings,
                            const Sizes& sizes) {
  PermuteWithEp::Args args{
      .tokens = required(operands, "tokens").desc,
      .indices = required(operands, "indices").desc,
      .probs = desc_of(operands, "probs"),
      .ep_range = settings.ep_range,
      .num_experts = settings.num_experts,
      .permuted_tokens = TensorDesc::contiguous(sizes.dtype, {sizes.num_rows, sizes.hidden_size}),
      .sorted_indices = TensorDesc::contiguous(settings.index_dtype, {sizes.num_slots()}),
      .check_indices = settings.check_indices};
  if (args.probs) {
    args.permuted_probs = TensorDesc::contiguous(args.probs->dtype, {sizes.num_rows});
  }
  if (settings.num_experts) {
    args.tokens_per_expert = TensorDesc::contiguous(settings.index_dtype, {*settings.num_experts});
  }
  return args;
}

std::vector<OutputSpec> outputs_of(const PermuteWithEp::Args& args) {
  std::vector<OutputSpec> outputs = {{"permuted_tokens", args.permuted_tokens},
                                     {"sorted_indices", args.sorted_indices}};
  if (args.permuted_probs) outputs.push_back({"permuted_probs", *args.permuted_probs});
  if (args.tokens_per_expert) outputs.push_back({"tokens_per_expert", *args.tokens_per_expert});
  return outputs;
}

}  // namespace

Planned plan_permute(const Operands& operands, const Settings& settings) {
  const Sizes sizes =
      sizes_of(required(operands, "tokens").desc, required(operands, "indices").desc, settings);
  const PermuteWithEp::Args args = args_of(operands, settings, sizes);
  const PermuteWithEp plan = PermuteWithEp::plan(args, settings.engine);
  const PermuteWithEp::Pointers inputs{.tokens = data_of(operands, "tokens"),
                                       .indices = data_of(operands, "indices"),
                                       .probs = data_of(operands, "probs")};
  const auto bind = [=](std::span<std::byte* const> outputs) {
    PermuteWithEp::Pointers pointers = inputs;
    auto next = outputs.begin();
    pointers.permuted_tokens = *next++;
    pointers.sorted_indices = *next++;
    if (args.permuted_probs) pointers.permuted_probs = *next++;
    if (args.tokens_per_expert) pointers.tokens_per_expert = *next++;
    return plan.bind(pointers);
  };
  return {sizes,          outputs_of(args),       plan.kernel_name(),
          plan.explain(), plan.workspace_bytes(), bind};
}

}  // namespace moe::tools
