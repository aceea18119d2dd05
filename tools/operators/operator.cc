#include "operators/operator.h"

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

int64_t top_k_of(const Operands& operands, const Settings& settings,
                 std::initializer_list<const char*> names) {
  if (settings.top_k) return *settings.top_k;
  for (const char* name : names) {
    const auto desc = desc_of(operands, name);
    if (desc && desc->num_dims == 2) return desc->shape[1];
    if (desc && desc->num_dims == 1) return 1;
  }
  throw UsageError(
      "top_k: not given, but needs --top-k, or probs or indices of shape [T, K] in the files");
}

}  // namespace moe::tools
