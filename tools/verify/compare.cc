#include "verify/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "verify/numbers.h"

namespace moe::tools {
namespace {

// Calls fn(begin, end) for the blocks of elements whose bytes are not all the same, until it
// returns false.
template <class Fn>
void for_unequal_blocks(const StoredTensor& a, const StoredTensor& b, Fn&& fn) {
  constexpr int64_t kBlock = 1024;
  const int64_t width = facts(a.dtype).bits / 8, count = num_elements(a);
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(count, begin + kBlock);
    const auto num_bytes = static_cast<size_t>((end - begin) * width);
    if (std::memcmp(a.bytes.data() + begin * width, b.bytes.data() + begin * width, num_bytes) ==
        0) {
      continue;
    }
    if (!fn(begin, end)) return;
  }
}

bool same_bits(const StoredTensor& a, const StoredTensor& b, int64_t i) {
  const int64_t width = facts(a.dtype).bits / 8;
  return std::memcmp(a.bytes.data() + i * width, b.bytes.data() + i * width,
                     static_cast<size_t>(width)) == 0;
}

// Adds what element i has to say; the caller knows that its bits differ.
void add_element(Difference& difference, const StoredTensor& ours, const StoredTensor& theirs,
                 int64_t i) {
  const bool a = is_nan(ours.dtype, ours.bytes.data(), i);
  const bool b = is_nan(theirs.dtype, theirs.bytes.data(), i);
  if (a && b) return;
  if (difference.num_different++ == 0) difference.first = i;
  if (a || b) {
    ++difference.num_nan;
    return;
  }
  const uint64_t ulps = ulps_between(ordinal(ours.dtype, ours.bytes.data(), i),
                                     ordinal(theirs.dtype, theirs.bytes.data(), i));
  difference.num_zero_signs += ulps == 0;
  difference.max_ulps = std::max(difference.max_ulps, ulps);
  difference.mean_ulps += static_cast<double>(ulps);
}

// The largest finite magnitude of a tensor's row that an element is in.
class RowMagnitude {
 public:
  explicit RowMagnitude(const StoredTensor& tensor)
      : tensor_(tensor),
        width_(tensor.shape.empty() ? 1 : std::max<int64_t>(tensor.shape.back(), 1)) {}

  double of(int64_t i) {
    if (i / width_ == row_) return largest_;
    row_ = i / width_;
    largest_ = 0;
    for (int64_t j = row_ * width_; j < (row_ + 1) * width_; ++j) {
      const double magnitude = std::fabs(load_number(tensor_.dtype, tensor_.bytes.data(), j));
      if (std::isfinite(magnitude)) largest_ = std::max(largest_, magnitude);
    }
    return largest_;
  }

 private:
  const StoredTensor& tensor_;
  int64_t width_, row_ = -1;
  double largest_ = 0;
};

// A sum of n terms that is rounded after each has an error of about n half units of the partial
// sums, whose size a row's largest element stands for.
Match match_element(const StoredTensor& expected, const StoredTensor& theirs, int64_t i,
                    int64_t num_terms, RowMagnitude& magnitude) {
  const double want = load_number(expected.dtype, expected.bytes.data(), i);
  const double got = load_number(theirs.dtype, theirs.bytes.data(), i);
  if (want == got || (std::isnan(want) && std::isnan(got))) return Match::kEqual;
  if (num_terms == 0 || !is_float(expected.dtype) || !std::isfinite(want) || !std::isfinite(got)) {
    return Match::kNone;
  }
  const double error = std::fabs(want - got), size = magnitude.of(i);
  const double own = half_ulp_of_one(expected.dtype), terms = static_cast<double>(num_terms);
  const double accumulator = std::min(own, 0x1p-24);
  const double one_ulp = 2 * own * std::fabs(want) + 0x1p-24 * own;  // and one of the subnormals
  if (error <= one_ulp + 2 * terms * accumulator * size) return Match::kRounding;
  return error <= one_ulp + 2 * terms * own * size ? Match::kCoarse : Match::kNone;
}

}  // namespace

Difference compare(const StoredTensor& ours, const StoredTensor& theirs) {
  Difference difference;
  difference.num_elements = num_elements(ours);
  difference.same_kind = ours.dtype == theirs.dtype && ours.shape == theirs.shape;
  if (!difference.same_kind) return difference;
  for_unequal_blocks(ours, theirs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (!same_bits(ours, theirs, i)) add_element(difference, ours, theirs, i);
    }
    return true;
  });
  const int64_t measured = difference.num_different - difference.num_nan;
  if (measured > 0) difference.mean_ulps /= static_cast<double>(measured);
  return difference;
}

bool has_rows_like(const StoredTensor& ours, const StoredTensor& theirs) {
  return ours.dtype == theirs.dtype && ours.shape.size() == theirs.shape.size() &&
         !ours.shape.empty() &&
         std::equal(ours.shape.begin() + 1, ours.shape.end(), theirs.shape.begin() + 1);
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{}; });
}

Match match(const StoredTensor& expected, const StoredTensor& theirs, int64_t num_terms) {
  if (expected.dtype != theirs.dtype || expected.shape != theirs.shape) return Match::kNone;
  Match worst = Match::kEqual;
  RowMagnitude magnitude(expected);
  for_unequal_blocks(expected, theirs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && worst != Match::kNone; ++i) {
      worst = std::min(worst, match_element(expected, theirs, i, num_terms, magnitude));
    }
    return worst != Match::kNone;
  });
  return worst;
}

}  // namespace moe::tools
