// Two tensors, element by element.
#pragma once

#include <cstdint>

#include "files/stored_tensor.h"

namespace moe::tools {

struct Difference {
  bool same_kind = true;  // shape and dtype; if not, nothing else was compared
  int64_t num_elements = 0;
  int64_t num_different = 0;   // in bits; a NaN equals any other
  int64_t num_zero_signs = 0;  // of these: zeros of the other sign
  int64_t num_nan = 0;         // of these: NaN on one side
  uint64_t max_ulps = 0;       // over those where no side is NaN
  double mean_ulps = 0;        // over the same
  int64_t first = -1;          // the first different element, row-major
  bool equal() const { return same_kind && num_different == 0; }
};

// Both row-major.
Difference compare(const StoredTensor& ours, const StoredTensor& theirs);

// Whether the two differ in their number of rows at most.
bool has_rows_like(const StoredTensor& ours, const StoredTensor& theirs);
bool all_zero(std::span<const std::byte> bytes);

enum class Match {
  kNone,
  kCoarse,    // within what additions rounded to the tensor's own type would make of it
  kRounding,  // within what another order of float32 additions would make of it
  kEqual,     // in bits, but for the sign of zeros
};

// How well `expected` explains `theirs`, whose sums have `num_terms` terms: 0 for what is copied
// and must be equal. Stops at the first element that settles it.
Match match(const StoredTensor& expected, const StoredTensor& theirs, int64_t num_terms);

}  // namespace moe::tools
