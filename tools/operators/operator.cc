#include "operators/operator.h"

#include <algorithm>

#include "cli/errors.h"
#include "files/text.h"

namespace moe::tools {

const std::vector<Operator>& all_operators() {
  static const std::vector<Operator> operators = {
      {"permute",
       "Tokens to their experts: the rows that one rank, or all, receive",
       {{"tokens", true, "[T, H]"},
        {"indices", true, "[T, K] or [T]"},
        {"probs", false, "[T, K] or [T]"}},
       {"permuted_tokens", "sorted_indices", "permuted_probs", "tokens_per_expert"},
       plan_permute},
      {"permute-grad",
       "The gradient of permute: rows' gradients back to their tokens",
       {{"permuted_tokens_grad", true, "[rows, H]"},
        {"sorted_indices", true, "[L]"},
        {"permuted_probs_grad", false, "[rows]"}},
       {"tokens_grad", "probs_grad"},
       plan_permute_grad},
      {"unpermute",
       "The experts' rows back to their tokens, weighted by probs",
       {{"permuted_tokens", true, "[rows, H]"},
        {"sorted_indices", true, "[L]"},
        {"probs", false, "[T, K]"}},
       {"out"},
       plan_unpermute},
      {"unpermute-grad",
       "The gradient of unpermute: of the rows and of probs",
       {{"unpermuted_tokens_grad", true, "[T, H]"},
        {"sorted_indices", true, "[L]"},
        {"permuted_tokens", false, "[rows, H]"},
        {"probs", false, "[T, K]"}},
       {"permuted_tokens_grad", "probs_grad"},
       plan_unpermute_grad},
  };
  return operators;
}

const Operator& find_operator(const std::string& verb) {
  for (const Operator& op : all_operators()) {
    if (verb == op.verb) return op;
  }
  throw UsageError("operator: " + quoted(verb) +
                   ", but needs permute, permute-grad, unpermute or unpermute-grad");
}

const Operand& required(const Operands& operands, const char* name) { return operands.at(name); }

std::optional<TensorDesc> desc_of(const Operands& operands, const char* name) {
  const auto found = operands.find(name);
  if (found == operands.end()) return {};
  return found->second.desc;
}

const std::byte* data_of(const Operands& operands, const char* name) {
  const auto found = operands.find(name);
  return found == operands.end() ? nullptr : found->second.data;
}

int64_t top_k_of(const Operands& operands, const Settings& settings) {
  bool flat = false;
  for (const char* name : {"probs", "indices"}) {
    const auto desc = desc_of(operands, name);
    flat |= desc && desc->num_dims == 1;
    if (!desc || desc->num_dims != 2) continue;
    check_top_k(settings, desc->shape[1], name);
    return desc->shape[1];
  }
  if (settings.top_k || flat) return settings.top_k.value_or(1);
  throw UsageError(
      "top_k: not given, but needs --top-k, or probs or indices of shape [T, K] in the files");
}

void check_top_k(const Settings& settings, int64_t top_k, const char* name) {
  if (settings.top_k.value_or(top_k) == top_k) return;
  throw UsageError(
      text("--top-k ", *settings.top_k, ": but the ", name, " have ", top_k, " for each token"));
}

Sizes sizes_from_rows(const Operands& operands, const Settings& settings, const char* rows_name) {
  const TensorDesc& rows = required(operands, rows_name).desc;
  const TensorDesc& indices = required(operands, "sorted_indices").desc;
  Sizes sizes;
  sizes.top_k = top_k_of(operands, settings);
  sizes.num_tokens = sizes.top_k > 0 ? indices.shape[0] / sizes.top_k : 0;
  sizes.num_rows = rows.num_dims > 0 ? rows.shape[0] : 0;
  sizes.hidden_size = rows.num_dims > 1 ? rows.shape[1] : 0;
  sizes.dtype = rows.dtype;
  sizes.window = settings.ep_range.value_or(EpRange{0, sizes.num_rows});
  return sizes;
}

EpRange window_of(const Settings& settings, const Sizes& sizes) {
  return settings.ep_range.value_or(EpRange{0, std::min(sizes.num_rows, sizes.num_slots())});
}

}  // namespace moe::tools
