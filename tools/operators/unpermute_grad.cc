#include <algorithm>

#include "cli/errors.h"
#include "files/text.h"
#include "operators/operator.h"

namespace moe::tools {
namespace {

int64_t rows_of(const Operands& operands, const Settings& settings, int64_t num_slots) {
  const auto permuted = desc_of(operands, "permuted_tokens");
  if (permuted) {
    const int64_t rows = permuted->num_dims > 0 ? permuted->shape[0] : 0;
    if (settings.rows.value_or(rows) == rows) return rows;
    throw UsageError(text("--rows ", *settings.rows, ": but permuted_tokens has ", rows));
  }
  const EpRange window = settings.ep_range.value_or(EpRange{0, num_slots});
  return settings.rows.value_or(std::max<int64_t>(window.end - window.begin, 0));
}

Sizes sizes_of(const Operands& operands, const Settings& settings) {
  const TensorDesc& grad = required(operands, "unpermuted_tokens_grad").desc;
  Sizes sizes;
  sizes.num_tokens = grad.num_dims > 0 ? grad.shape[0] : 0;
  sizes.hidden_size = grad.num_dims > 1 ? grad.shape[1] : 0;
  sizes.top_k = top_k_of(operands, settings);
  sizes.num_rows = rows_of(operands, settings, sizes.num_slots());
  sizes.dtype = grad.dtype;
  sizes.window = window_of(settings, sizes);
  return sizes;
}

UnpermuteWithEpGrad::Args args_of(const Operands& operands, const Settings& settings,
                                  const Sizes& sizes) {
  UnpermuteWithEpGrad::Args args{
      .unpermuted_tokens_grad = required(operands, "unpermuted_tokens_grad").desc,
      .sorted_indices = required(operands, "sorted_indices").desc,
      .permuted_tokens = desc_of(operands, "permuted_tokens"),
      .probs = desc_of(operands, "probs"),
      .top_k = sizes.top_k,
      .ep_range = settings.ep_range,
      .permuted_tokens_grad =
          TensorDesc::contiguous(sizes.dtype, {sizes.num_rows, sizes.hidden_size}),
      .check_indices = settings.check_indices};
  if (args.probs && args.permuted_tokens) {
    args.probs_grad = TensorDesc::contiguous(args.probs->dtype, {sizes.num_tokens, sizes.top_k});
  }
  return args;
}

}  // namespace

Planned plan_unpermute_grad(const Operands& operands, const Settings& settings) {
  const Sizes sizes = sizes_of(operands, settings);
  const UnpermuteWithEpGrad::Args args = args_of(operands, settings, sizes);
  const UnpermuteWithEpGrad plan = UnpermuteWithEpGrad::plan(args, settings.engine);
  std::vector<OutputSpec> specs = {{"permuted_tokens_grad", args.permuted_tokens_grad}};
  if (args.probs_grad) specs.push_back({"probs_grad", *args.probs_grad});
  const UnpermuteWithEpGrad::Pointers inputs{
      .unpermuted_tokens_grad = data_of(operands, "unpermuted_tokens_grad"),
      .sorted_indices = data_of(operands, "sorted_indices"),
      .permuted_tokens = data_of(operands, "permuted_tokens"),
      .probs = data_of(operands, "probs")};
  const auto bind = [=](std::span<std::byte* const> outputs) {
    UnpermuteWithEpGrad::Pointers pointers = inputs;
    pointers.permuted_tokens_grad = outputs[0];
    if (args.probs_grad) pointers.probs_grad = outputs[1];
    return plan.bind(pointers);
  };
  return {sizes, specs, plan.kernel_name(), plan.explain(), plan.workspace_bytes(), bind};
}

}  // namespace moe::tools
