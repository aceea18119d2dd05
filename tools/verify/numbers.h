// Elements as numbers: what comparing and re-computing need.
#pragma once

#include <cstddef>
#include <cstdint>

#include "files/dtypes.h"

namespace moe::tools {

// float16, bfloat16, float32 and float64.
bool is_float(FileDType dtype);
// Those, int32, int64 and the other integers: whatever load_number takes.
bool is_number(FileDType dtype);

// The element `index` of an array at any address, exact (but for integers past 2^53).
double load_number(FileDType dtype, const std::byte* data, int64_t index);
// Rounded to nearest even, from float32's range and precision for the narrow types.
void store_number(FileDType dtype, std::byte* data, int64_t index, double value);

float widen(FileDType dtype, uint16_t bits);
uint16_t narrow(FileDType dtype, float value);
// `value` as the dtype (a narrow one, or float32) holds it.
float rounded(FileDType dtype, float value);
// The same, cut towards zero.
float truncated(FileDType dtype, float value);

// Elements in ascending order are consecutive integers; both zeros are 0. Not for NaN.
int64_t ordinal(FileDType dtype, const std::byte* data, int64_t index);
bool is_nan(FileDType dtype, const std::byte* data, int64_t index);
// Units in the last place between two elements that are not NaN.
uint64_t ulps_between(int64_t a, int64_t b);

// Half the gap between 1 and the next number, which bounds a rounding's relative error.
double half_ulp_of_one(FileDType dtype);

}  // namespace moe::tools
