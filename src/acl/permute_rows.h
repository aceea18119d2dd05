// How many rows the two forward permutations make in this layer, and no others.
#pragma once

#include <cstdint>

#include "moe/tensor.h"

namespace moe::acl {

// InvalidArgument unless the output `name` has exactly the range's rows.
void check_rows_of_range(const char* name, const TensorDesc& output, const EpRange& range);
// The same for the rows that numOutTokens keeps of `num_slots`: the first n where n > 0, else all
// but the last -n.
void check_rows_kept(const char* name, const TensorDesc& output, int64_t num_out_tokens,
                     int64_t num_slots);

// The experts per token that the indices give; at most what numTopk may be.
void check_experts_per_token(const char* name, const TensorDesc& indices);

}  // namespace moe::acl
