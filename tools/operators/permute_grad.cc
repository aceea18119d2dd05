#include "operators/operator.h"

namespace moe::tools {
namespace {

PermuteWithEpGrad::Args args_of(const Operands& operands, const Settings& settings,
                                const Sizes& sizes) {
  PermuteWithEpGrad::Args args{
      .permuted_tokens_grad = required(operands, "permuted_tokens_grad").desc,
      .sorted_indices = required(operands, "sorted_indices").desc,
      .permuted_probs_grad = desc_of(operands, "permuted_probs_grad"),
      .top_k = sizes.top_k,
      .ep_range = settings.ep_range,
      .tokens_grad = TensorDesc::contiguous(sizes.dtype, {sizes.num_tokens, sizes.hidden_size}),
      .check_indices = settings.check_indices};
  if (args.permuted_probs_grad) {
    args.probs_grad =
        TensorDesc::contiguous(args.permuted_probs_grad->dtype, {sizes.num_tokens, sizes.top_k});
  }
  return args;
}

}  // namespace

Planned plan_permute_grad(const Operands& operands, const Settings& settings) {
  const Sizes sizes = sizes_from_rows(operands, settings, "permuted_tokens_grad");
  const PermuteWithEpGrad::Args args = args_of(operands, settings, sizes);
  const PermuteWithEpGrad plan = PermuteWithEpGrad::plan(args, settings.engine);
  std::vector<OutputSpec> specs = {{"tokens_grad", args.tokens_grad}};
  if (args.probs_grad) specs.push_back({"probs_grad", *args.probs_grad});
  const PermuteWithEpGrad::Pointers inputs{
      .permuted_tokens_grad = data_of(operands, "permuted_tokens_grad"),
      .sorted_indices = data_of(operands, "sorted_indices"),
      .permuted_probs_grad = data_of(operands, "permuted_probs_grad")};
  const auto bind = [=](std::span<std::byte* const> outputs) {
    PermuteWithEpGrad::Pointers pointers = inputs;
    pointers.tokens_grad = outputs[0];
    if (args.probs_grad) pointers.probs_grad = outputs[1];
    return plan.bind(pointers);
  };
  return {sizes, specs, plan.kernel_name(), plan.explain(), plan.workspace_bytes(), bind};
}

}  // namespace moe::tools
