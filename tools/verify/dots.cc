// probs_grad of unpermute-grad: the right products, added in another way.
#include <cmath>

#include "verify/hypothesis.h"
#include "verify/numbers.h"
#include "verify/terms.h"

namespace moe::tools {
namespace {

struct Dot {
  bool narrow_products = false, narrow_sums = false, fused = false, wide = false;
};

template <class Accumulator>
double dot(const Operand& a, int64_t row, const Operand& b, int64_t token, int64_t n,
           const Dot& how) {
  const FileDType narrow = file_dtype(a.desc.dtype);
  const auto narrowed = [&](Accumulator x) {
    return static_cast<Accumulator>(rounded(narrow, static_cast<float>(x)));
  };
  Accumulator total = 0;
  for (int64_t h = 0; h < n; ++h) {
    const auto x = static_cast<Accumulator>(element_of(a, row, h));
    const auto y = static_cast<Accumulator>(element_of(b, token, h));
    if (how.fused) {
      total = std::fma(x, y, total);
      continue;
    }
    const Accumulator product = x * y;
    total += how.narrow_products ? narrowed(product) : product;
    if (how.narrow_sums) total = narrowed(total);
  }
  return total;
}

std::optional<Outcome> dots(const Suspect& s, const Dot& how) {
  const StoredTensor& ours = *s.our("probs_grad");
  const StoredTensor& theirs = s.theirs.at("probs_grad");
  if (theirs.dtype != ours.dtype || theirs.shape != ours.shape) return {};
  const Operand &rows = s.operands.at("permuted_tokens"),
                &grad = s.operands.at("unpermuted_tokens_grad");
  const bool wide = how.wide || s.sizes.dtype == DType::kF64;
  const OwnedTensor expected = make_tensor(ours.name, ours.dtype, ours.shape);
  const auto [begin, end] = s.sizes.window;
  for (int64_t slot = 0; slot < s.num_slots(); ++slot) {
    const int64_t row = s.rows[static_cast<size_t>(slot)], token = slot / s.sizes.top_k;
    double value = 0;
    if (row >= begin && row < end) {
      value = wide ? dot<double>(rows, row - begin, grad, token, s.sizes.hidden_size, how)
                   : dot<float>(rows, row - begin, grad, token, s.sizes.hidden_size, how);
    }
    store_number(ours.dtype, expected.memory.get(), slot, value);
    const double stored = load_number(ours.dtype, expected.memory.get(), slot);
    const double got = load_number(theirs.dtype, theirs.bytes.data(), slot);
    if (stored != got && !(std::isnan(stored) && std::isnan(got))) return {};
  }
  return Outcome{.expected = {expected}};
}

bool has_dots(const Suspect& s) {
  return s.is("unpermute-grad") && s.our("probs_grad") && s.theirs.count("probs_grad") > 0;
}

Variant variant(const Suspect& s, std::string detail, const Dot& how) {
  return {std::move(detail), [&s, how] { return dots(s, how); }};
}

}  // namespace

std::vector<Variant> plain_dot(const Suspect& s) {
  if (!has_dots(s)) return {};
  return {variant(s, "probs_grad adds its products one after another", {}),
          variant(s, "probs_grad adds its products one after another, multiply and add round once",
                  {.fused = true}),
          variant(s, "probs_grad is added in float64", {.wide = true})};
}

std::vector<Variant> narrow_dot(const Suspect& s) {
  if (!has_dots(s) || s.sizes.dtype == DType::kF32 || s.sizes.dtype == DType::kF64) return {};
  const std::string type = dtype_name(s.sizes.dtype);
  return {variant(s, "probs_grad rounds each product to " + type, {.narrow_products = true}),
          variant(s, "probs_grad rounds its sum to " + type + " after each addition",
                  {.narrow_sums = true}),
          variant(s, "probs_grad rounds products and sums to " + type,
                  {.narrow_products = true, .narrow_sums = true})};
}

}  // namespace moe::tools
