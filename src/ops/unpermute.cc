#include "ops/unpermute.h"

#include "core/checks.h"
#include "core/text.h"
#include "ops/arguments.h"

namespace moe {
namespace {

void check_probs(const TensorDesc& probs, int64_t num_tokens, int64_t top_k) {
  if (probs.shape[0] == num_tokens && probs.shape[1] == top_k) return;
  throw InvalidArgument("probs", text("shape ", shape_text(probs), ", but needs [", num_tokens,
                                      ", ", top_k, "]: [num_tokens, top_k]"));
}

}  // namespace

void check_slots(const SlotArgs& slots, const char* tokens_name, const TensorDesc& tokens) {
  check_index_dtype("sorted_indices", slots.sorted_indices);
  check_layout("sorted_indices", slots.sorted_indices, 1, "[num_tokens * top_k]");
  check_num_slots("sorted_indices", slots.num_slots());
  check_top_k(slots.top_k, "sorted_indices", slots.num_slots());
  if (!slots.probs) return;
  check_float_dtype("probs", *slots.probs);
  check_layout("probs", *slots.probs, 2, "[num_tokens, top_k]");
  check_float64_pair("probs", slots.probs->dtype, tokens_name, tokens.dtype);
  check_probs(*slots.probs, slots.num_tokens(), slots.top_k);
}

UnpermuteProblem problem_of_slots(const SlotArgs& slots, const TensorDesc& tokens) {
  UnpermuteProblem problem{};
  problem.num_tokens = slots.num_tokens();
  problem.top_k = slots.top_k;
  problem.hidden_size = tokens.shape[1];
  problem.tokens_dtype = tokens.dtype;
  problem.index_dtype = slots.sorted_indices.dtype;
  problem.index_stride = stride_of(slots.sorted_indices, 0);
  problem.has_probs = slots.probs.has_value();
  if (problem.has_probs) {
    problem.probs_dtype = slots.probs->dtype;
    problem.probs_token_stride = stride_of(*slots.probs, 0);
    problem.probs_stride = stride_of(*slots.probs, 1);
  }
  return problem;
}

}  // namespace moe
