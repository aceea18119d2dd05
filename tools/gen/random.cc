#include "gen/random.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "verify/numbers.h"

namespace moe::tools {
namespace {

void fill_floats(FileDType dtype, std::span<std::byte> bytes, Random& random) {
  const auto count = num_elements(dtype, bytes);
  for (int64_t i = 0; i < count; ++i) {
    store_number(dtype, bytes.data(), i, 2 * random.unit() - 1);
  }
}

void fill_bits(std::span<std::byte> bytes, std::byte mask, Random& random) {
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t bits = random.next();
    std::memcpy(bytes.data() + i, &bits, std::min<size_t>(8, bytes.size() - i));
  }
  for (std::byte& byte : bytes) byte &= mask;
}

// The bits of a byte that may be set without making a truth value, or a NaN of any of the formats
// with 8 bits.
std::byte mask_of(FileDType dtype) {
  if (dtype == FileDType::kBool) return std::byte{0x01};
  const bool eight_bit_float = dtype >= FileDType::kF8E5M2 && dtype <= FileDType::kF8E5M2Fnuz;
  return std::byte{eight_bit_float ? uint8_t{0x77} : uint8_t{0xFF}};
}

}  // namespace

uint64_t Random::next() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

uint64_t seed_for(uint64_t seed, const std::string& tensor) {
  for (const char c : tensor) seed = Random(seed ^ static_cast<unsigned char>(c)).next();
  return seed;
}

void fill_random(FileDType dtype, std::span<std::byte> bytes, uint64_t seed) {
  Random random(seed);
  if (dtype == FileDType::kC64) dtype = FileDType::kF32;
  if (is_float(dtype)) {
    fill_floats(dtype, bytes, random);
  } else {
    fill_bits(bytes, mask_of(dtype), random);
  }
}

void fill_probs(FileDType dtype, std::span<std::byte> bytes, int64_t top_k, uint64_t seed) {
  Random random(seed);
  const auto count = num_elements(dtype, bytes);
  std::vector<double> weights(static_cast<size_t>(top_k));
  for (int64_t i = 0; i < count; i += top_k) {
    double sum = 0;
    for (double& weight : weights) sum += weight = 0.05 + random.unit();
    for (int64_t k = 0; k < top_k; ++k) {
      store_number(dtype, bytes.data(), i + k, weights[static_cast<size_t>(k)] / sum);
    }
  }
}

}  // namespace moe::tools
