// Random numbers and tensors: the same for the same seed on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "files/dtypes.h"

namespace moe::tools {

// SplitMix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  // Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

// A seed of its own for each tensor of a run.
uint64_t seed_for(uint64_t seed, const std::string& tensor);

// Floating elements uniform in [-1, 1), integers over their whole range, narrower floats any finite
// bits; never NaN.
void fill_random(FileDType dtype, std::span<std::byte> bytes, uint64_t seed);

// Rows of `top_k` positive weights whose sum is 1 before rounding.
void fill_probs(FileDType dtype, std::span<std::byte> bytes, int64_t top_k, uint64_t seed);

}  // namespace moe::tools
