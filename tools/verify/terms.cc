#include "verify/terms.h"

#include "verify/numbers.h"

namespace moe::tools {

double element_of(const Operand& operand, int64_t i, int64_t j) {
  return load_number(file_dtype(operand.desc.dtype), operand.data,
                     i * operand.desc.strides[0] + j * operand.desc.strides[1]);
}

Terms::Terms(const Suspect& suspect, const char* rows)
    : suspect_(suspect),
      rows_(suspect.operands.at(rows)),
      probs_(suspect.is("unpermute") && suspect.has("probs") ? &suspect.operands.at("probs")
                                                             : nullptr),
      dtype_(file_dtype(rows_.desc.dtype)) {}

double Terms::element(int64_t row, int64_t h) const { return element_of(rows_, row, h); }

double Terms::weight(int64_t slot) const {
  const int64_t k = suspect_.sizes.top_k;
  return probs_ ? element_of(*probs_, slot / k, slot % k) : 1;
}

std::vector<Term> Terms::of_token(int64_t token) const {
  const auto [begin, end] = suspect_.sizes.window;
  const int64_t k = suspect_.sizes.top_k;
  std::vector<Term> terms;
  for (int64_t slot = token * k; slot < (token + 1) * k; ++slot) {
    const int64_t row = suspect_.rows[static_cast<size_t>(slot)];
    if (row < begin || row >= end || weight(slot) == 0) continue;
    terms.push_back({row - begin, weight(slot)});
  }
  return terms;
}

}  // namespace moe::tools
