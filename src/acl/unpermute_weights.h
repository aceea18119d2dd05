// What the four unpermute operators of this layer share.
#pragma once

#include <optional>

#include "acl/arguments.h"
#include "moe/tensor.h"

namespace moe::acl {

struct Weights {
  std::optional<TensorDesc> probs;
  int64_t top_k;
};

// restoreShapeOptional belongs to the padded mode, which is not supported.
void check_no_padding(bool padded_mode, const aclIntArray* restore_shape);

// The probs of a slot, and K: theirs. Without probs K is 1, or what `top_k_name` says where the
// operator has such an attribute; with them the attribute must agree.
Weights weights_of(Arguments& call, size_t slot, const aclTensor* probs);
Weights weights_of(Arguments& call, size_t slot, const aclTensor* probs, const char* top_k_name,
                   int64_t top_k);

}  // namespace moe::acl
