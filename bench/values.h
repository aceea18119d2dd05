// Elements as numbers, for checking answers.
#pragma once

#include <cstddef>

#include "moe/tensor.h"

namespace moe::bench {

// float32, float16 or bfloat16.
double to_double(DType dtype, const std::byte* at);

// Half a unit in the last place, relative.
double half_unit(DType dtype);

}  // namespace moe::bench
