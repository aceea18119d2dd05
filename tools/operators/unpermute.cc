#include "operators/operator.h"

namespace moe::tools {

Planned plan_unpermute(const Operands& operands, const Settings& settings) {
  const Sizes sizes = sizes_from_rows(operands, settings, "permuted_tokens");
  const UnpermuteWithEp::Args args{
      .permuted_tokens = required(operands, "permuted_tokens").desc,
      .sorted_indices = required(operands, "sorted_indices").desc,
      .probs = desc_of(operands, "probs"),
      .top_k = sizes.top_k,
      .ep_range = settings.ep_range,
      .out = TensorDesc::contiguous(sizes.dtype, {sizes.num_tokens, sizes.hidden_size}),
      .check_indices = settings.check_indices};
  const UnpermuteWithEp plan = UnpermuteWithEp::plan(args, settings.engine);
  const UnpermuteWithEp::Pointers inputs{.permuted_tokens = data_of(operands, "permuted_tokens"),
                                         .sorted_indices = data_of(operands, "sorted_indices"),
                                         .probs = data_of(operands, "probs")};
  const auto bind = [=](std::span<std::byte* const> outputs) {
    UnpermuteWithEp::Pointers pointers = inputs;
    pointers.out = outputs[0];
    return plan.bind(pointers);
  };
  return {sizes,          {{"out", args.out}},    plan.kernel_name(),
          plan.explain(), plan.workspace_bytes(), bind};
}

}  // namespace moe::tools
