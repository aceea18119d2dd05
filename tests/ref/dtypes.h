// The oracle's own number formats: elements as bits, and the two conversions that need care. Shares
// no code with the library on purpose: a mistake there must not be repeated here.
#pragma once

#include <cstdint>

namespace ref {

enum class Type { kF32, kF16, kBF16, kF64, kI32, kI64 };

int64_t type_bytes(Type type);

// A 16-bit float's value as the bits of the same float32, which exists for every value.
uint32_t widen(Type type, uint16_t bits);
// The bits of a float32 rounded to nearest, ties to even; too large becomes infinity, NaN stays
// NaN.
uint16_t narrow(Type type, uint32_t bits);

// Element `index` (counted in elements) of an array with any alignment.
float load_f32(Type type, const void* data, int64_t index);
double load_f64(const void* data, int64_t index);
int64_t load_int(Type type, const void* data, int64_t index);
void store_f32(Type type, void* data, int64_t index, float value);

}  // namespace ref
