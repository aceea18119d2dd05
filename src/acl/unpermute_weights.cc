#include "acl/unpermute_weights.h"

#include "acl/runtime/error.h"
#include "moe/error.h"

namespace moe::acl {

void check_no_padding(bool padded_mode, const aclIntArray* restore_shape) {
  check_padded_mode(padded_mode);
  if (restore_shape == nullptr) return;
  throw InvalidArgument("restoreShapeOptional",
                        "given, but must be null where paddedMode is false");
}

Weights weights_of(Arguments& call, size_t slot, const aclTensor* probs) {
  const char* name = call.op().slots[slot];
  if (is_absent(name, probs)) return {std::nullopt, 1};
  const TensorDesc desc = call.tensor(slot, probs, kFloats);
  // Of another rank they are rejected by the plan.
  const int64_t top_k = desc.num_dims == 2 ? desc.shape[1] : 1;
  check_top_k(name, top_k);
  return {desc, top_k};
}

Weights weights_of(Arguments& call, size_t slot, const aclTensor* probs, const char* top_k_name,
                   int64_t top_k) {
  check_top_k(top_k_name, top_k);
  const Weights weights = weights_of(call, slot, probs);
  if (!weights.probs) return {std::nullopt, top_k};
  if (weights.probs->num_dims == 2 && weights.top_k != top_k) {
    throw InvalidArgument(top_k_name, text(top_k, ", but needs ", weights.top_k,
                                           ", the second size of ", call.op().slots[slot]));
  }
  return {weights.probs, top_k};
}

}  // namespace moe::acl
