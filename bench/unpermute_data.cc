#include "unpermute_data.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "values.h"

namespace moe::bench {

UnpermuteData::UnpermuteData(const Case& c, Memory& memory)
    : case_(c),
      routing_(routing_of(c)),
      window_(window_of_rank(routing_, c.rank, c.num_ranks)),
      rows_(memory.rows.at_least(num_rows() * row_stride_bytes())),
      probs_(memory.probs.at_least(num_slots() * kProbBytes)),
      indices_(memory.indices.at_least(num_slots() * 4)) {
  std::memcpy(indices_, routing_.sorted_indices.data(), static_cast<size_t>(num_slots()) * 4);
}

int64_t UnpermuteData::row_of(int64_t slot) const {
  const int64_t row = routing_.sorted_indices[static_cast<size_t>(slot)];
  return row < window_.begin || row >= window_.end ? -1 : row - window_.begin;
}

int64_t UnpermuteData::num_tokens_with_rows() const {
  int64_t count = 0;
  for (int64_t token = 0; token < case_.num_tokens; ++token) {
    bool any = false;
    for (int64_t k = 0; k < case_.top_k; ++k) any |= row_of(token * case_.top_k + k) >= 0;
    count += any;
  }
  return count;
}

TensorDesc UnpermuteData::rows_desc() const {
  return TensorDesc::strided(case_.dtype, {num_rows(), case_.hidden_size},
                             {row_stride_bytes() / dtype_bytes(case_.dtype), 1});
}

double UnpermuteData::value(int64_t row, int64_t h) const {
  return to_double(case_.dtype, rows_ + row * row_stride_bytes() + h * dtype_bytes(case_.dtype));
}

double UnpermuteData::prob(int64_t slot) const {
  return to_double(DType::kF32, probs_ + slot * kProbBytes);
}

void expect_close(const std::string& what, double got, double want, double allowed) {
  if (std::abs(got - want) <= allowed) return;
  throw std::runtime_error("wrong answer: " + what + " is " + std::to_string(got) +
                           ", but should be " + std::to_string(want));
}

}  // namespace moe::bench
