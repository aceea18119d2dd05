// Mistakes with probs.
#include <cmath>

#include "verify/numbers.h"
#include "verify/rerun.h"

namespace moe::tools {
namespace {

// Elsewhere probs are no weights, and of permute-grad no input: no plan has checked their shape.
bool weighs(const Suspect& s) {
  return s.has("probs") && (s.is("unpermute") || s.is("unpermute-grad"));
}

// The probs of a case, by slot, whatever strides they have.
class Probs {
 public:
  explicit Probs(const Suspect& s)
      : operand_(s.operands.at("probs")), top_k_(s.sizes.top_k), num_slots_(s.num_slots()) {}

  FileDType dtype() const { return file_dtype(operand_.desc.dtype); }
  double operator[](int64_t slot) const {
    const auto& strides = operand_.desc.strides;
    const bool flat = operand_.desc.num_dims == 1;
    return load_number(
        dtype(), operand_.data,
        flat ? slot * strides[0] : slot / top_k_ * strides[0] + slot % top_k_ * strides[1]);
  }
  int64_t size() const { return num_slots_; }

 private:
  const Operand& operand_;
  int64_t top_k_, num_slots_;
};

}  // namespace

std::vector<Variant> probs_not_applied(const Suspect& s) {
  if (!weighs(s)) return {};
  return {{"every weight is 1", [&s] {
             Operands operands = s.operands;
             operands.erase("probs");
             return rerun(s.op, operands, s.settings, {"out", "permuted_tokens_grad"});
           }}};
}

std::vector<Variant> probs_applied(const Suspect& s) {
  if (!s.is("permute-grad") || !s.has("probs")) return {};
  return {{"rows are multiplied by probs, which this gradient does not do", [&s] {
             Operands operands = s.operands;
             operands["permuted_tokens"] = operands.at("permuted_tokens_grad");
             auto outcome = rerun(find_operator("unpermute"), operands, s.settings);
             if (outcome) outcome->expected[0].tensor.name = "tokens_grad";
             return outcome;
           }}};
}

std::vector<Variant> probs_applied_twice(const Suspect& s) {
  if (!weighs(s)) return {};
  return {{"each row is multiplied by its prob squared", [&s] {
             const Probs probs(s);
             return rerun_with_probs(s, probs.dtype(),
                                     [&](int64_t slot) {
                                       return static_cast<float>(probs[slot]) *
                                              static_cast<float>(probs[slot]);
                                     },
                                     {"out", "permuted_tokens_grad"});
           }}};
}

std::vector<Variant> probs_rounded(const Suspect& s) {
  std::vector<Variant> variants;
  if (!weighs(s)) return variants;
  const Probs probs(s);
  for (FileDType dtype : {FileDType::kBF16, FileDType::kF16, FileDType::kF32}) {
    if (half_ulp_of_one(dtype) <= half_ulp_of_one(probs.dtype())) continue;
    variants.push_back(
        {text("probs are rounded to ", facts(dtype).name, " first"), [&s, probs, dtype] {
           return rerun_with_probs(
               s, probs.dtype(),
               [&](int64_t slot) { return rounded(dtype, static_cast<float>(probs[slot])); },
               {"out", "permuted_tokens_grad"});
         }});
  }
  return variants;
}

std::vector<Variant> probs_normalized(const Suspect& s) {
  if (!weighs(s)) return {};
  return {{"a token's probs are divided by their sum", [&s] {
             const Probs probs(s);
             const int64_t k = s.sizes.top_k;
             return rerun_with_probs(s, probs.dtype(),
                                     [&](int64_t slot) {
                                       float sum = 0;
                                       for (int64_t i = slot / k * k; i < (slot / k + 1) * k; ++i) {
                                         sum += static_cast<float>(probs[i]);
                                       }
                                       return static_cast<float>(probs[slot]) / sum;
                                     },
                                     {"out", "permuted_tokens_grad"});
           }}};
}

std::vector<Variant> probs_by_row(const Suspect& s) {
  if (!weighs(s)) return {};
  return {{"a slot's prob is looked up at its row instead of at the slot", [&s] {
             const Probs probs(s);
             return rerun_with_probs(s, probs.dtype(),
                                     [&](int64_t slot) {
                                       const int64_t row = s.rows[static_cast<size_t>(slot)];
                                       return row >= 0 && row < probs.size() ? probs[row] : 0;
                                     },
                                     {"out", "permuted_tokens_grad"});
           }}};
}

std::vector<Variant> probs_transposed(const Suspect& s) {
  if (!weighs(s) || s.sizes.top_k == 1) return {};
  return {{"probs are read as [K, T]", [&s] {
             const Probs probs(s);
             const int64_t k = s.sizes.top_k;
             return rerun_with_probs(
                 s, probs.dtype(),
                 [&](int64_t slot) { return probs[slot % k * s.sizes.num_tokens + slot / k]; },
                 {"out", "permuted_tokens_grad"});
           }}};
}

}  // namespace moe::tools
