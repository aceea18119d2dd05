// The right terms, added in another way: in another precision or order. Each is computed token by
// token and given up at the first row that is not theirs, so only equal bits are claimed.
#include <algorithm>
#include <cmath>

#include "verify/compare.h"
#include "verify/hypothesis.h"
#include "verify/numbers.h"
#include "verify/terms.h"

namespace moe::tools {
namespace {

enum class Order { kAscending, kDescending, kByRow };
enum class Scale { kNone, kTopK, kCount };

struct Arithmetic {
  Order order = Order::kAscending;
  bool narrow_weights = false;   // probs are rounded to `narrow` first
  bool narrow_products = false;  // each product is rounded to `narrow`
  bool narrow_sums = false;      // the sum is rounded to `narrow` after each addition
  bool fused = false;            // multiply and add round once
  bool wide = false;             // in float64
  bool cut = false;              // the result is cut instead of rounded
  Scale scale = Scale::kNone;
  FileDType narrow = FileDType::kBF16;
};

const char* rows_name(const Suspect& s) {
  return s.is("permute-grad") ? "permuted_tokens_grad" : "permuted_tokens";
}
const char* output_name(const Suspect& s) { return s.is("permute-grad") ? "tokens_grad" : "out"; }

void arrange(std::vector<Term>& terms, Order order) {
  if (order == Order::kDescending) std::reverse(terms.begin(), terms.end());
  if (order == Order::kByRow) {
    std::sort(terms.begin(), terms.end(),
              [](const Term& a, const Term& b) { return a.row < b.row; });
  }
}

double divisor(const Suspect& s, const Arithmetic& how, const std::vector<Term>& terms) {
  if (how.scale == Scale::kTopK) return static_cast<double>(s.sizes.top_k);
  return how.scale == Scale::kCount ? static_cast<double>(std::max<size_t>(terms.size(), 1)) : 1;
}

template <class Accumulator>
double sum(const Terms& all, const std::vector<Term>& terms, int64_t h, const Arithmetic& how) {
  const auto narrowed = [&](Accumulator x) {
    return static_cast<Accumulator>(rounded(how.narrow, static_cast<float>(x)));
  };
  Accumulator total = 0;
  for (const Term& term : terms) {
    const auto x = static_cast<Accumulator>(all.element(term.row, h));
    auto weight = static_cast<Accumulator>(term.weight);
    if (how.narrow_weights) weight = narrowed(weight);
    if (how.fused) {
      total = std::fma(x, weight, total);
      continue;
    }
    Accumulator product = all.weighted() ? x * weight : x;
    if (how.narrow_products) product = narrowed(product);
    total += product;
    if (how.narrow_sums) total = narrowed(total);
  }
  return total;
}

double element(const Suspect& s, const Terms& all, const std::vector<Term>& terms, int64_t h,
               const Arithmetic& how) {
  const bool wide = how.wide || (all.dtype() == FileDType::kF64 && !how.narrow_sums);
  const double total = wide ? sum<double>(all, terms, h, how) : sum<float>(all, terms, h, how);
  const double by = divisor(s, how, terms);
  if (by == 1) return total;
  return wide ? total / by : static_cast<float>(total) / static_cast<float>(by);
}

// Whether row `token` of theirs is this one, but for the sign of zeros.
bool same_row(const StoredTensor& expected, const StoredTensor& theirs, int64_t token,
              int64_t hidden_size) {
  for (int64_t i = token * hidden_size; i < (token + 1) * hidden_size; ++i) {
    const double a = load_number(expected.dtype, expected.bytes.data(), i);
    const double b = load_number(theirs.dtype, theirs.bytes.data(), i);
    if (a != b && !(std::isnan(a) && std::isnan(b))) return false;
  }
  return true;
}

std::optional<Outcome> added(const Suspect& s, const Arithmetic& how) {
  const StoredTensor& ours = *s.our(output_name(s));
  const StoredTensor& theirs = s.theirs.at(output_name(s));
  if (theirs.dtype != ours.dtype || theirs.shape != ours.shape) return {};
  const Terms all(s, rows_name(s));
  const OwnedTensor expected = make_tensor(ours.name, ours.dtype, ours.shape);
  for (int64_t token = 0; token < s.sizes.num_tokens; ++token) {
    std::vector<Term> terms = all.of_token(token);
    arrange(terms, how.order);
    for (int64_t h = 0; h < s.sizes.hidden_size; ++h) {
      const double value = element(s, all, terms, h, how);
      const double stored = how.cut ? truncated(ours.dtype, static_cast<float>(value)) : value;
      store_number(ours.dtype, expected.memory.get(), token * s.sizes.hidden_size + h, stored);
    }
    if (!same_row(expected.tensor, theirs, token, s.sizes.hidden_size)) return {};
  }
  return Outcome{.expected = {expected}};
}

bool adds(const Suspect& s) {
  return (s.is("permute-grad") || s.is("unpermute")) && s.theirs.count(output_name(s)) > 0;
}

Variant variant(const Suspect& s, std::string detail, const Arithmetic& how) {
  return {std::move(detail), [&s, how] { return added(s, how); }};
}

constexpr Order kOrders[] = {Order::kAscending, Order::kDescending, Order::kByRow};

const char* order_text(Order order) {
  constexpr const char* kTexts[] = {"in ascending k", "in descending k", "in the order of rows"};
  return kTexts[static_cast<int>(order)];
}

// The narrow types that somebody may have calculated a case in.
std::vector<FileDType> narrow_types(const Suspect& s) {
  const FileDType own = file_dtype(s.sizes.dtype);
  if (own == FileDType::kBF16 || own == FileDType::kF16) return {own};
  if (own == FileDType::kF64) return {FileDType::kF32};
  return {FileDType::kBF16, FileDType::kF16};
}

}  // namespace

std::vector<Variant> narrow_sums(const Suspect& s) {
  std::vector<Variant> variants;
  if (!adds(s)) return variants;
  for (FileDType narrow : narrow_types(s)) {
    for (Order order : kOrders) {
      const std::string detail = text("sums in ", facts(narrow).name,
                                      ", rounded after each addition, ", order_text(order));
      Arithmetic how{.order = order, .narrow_sums = true, .narrow = narrow};
      variants.push_back(variant(s, detail, how));
      if (!s.is("unpermute")) continue;
      how.narrow_products = true;
      variants.push_back(variant(s, detail + ", products rounded too", how));
      how.narrow_weights = true;
      variants.push_back(variant(s, detail + ", products and probs rounded too", how));
    }
  }
  return variants;
}

std::vector<Variant> rounded_products(const Suspect& s) {
  std::vector<Variant> variants;
  if (!adds(s) || !s.is("unpermute")) return variants;
  for (FileDType narrow : narrow_types(s)) {
    Arithmetic how{.narrow_products = true, .narrow = narrow};
    variants.push_back(
        variant(s, text("each product is rounded to ", facts(narrow).name, ", then added"), how));
    how.narrow_weights = true;
    variants.push_back(variant(
        s, text("probs and each product are rounded to ", facts(narrow).name, ", then added"),
        how));
  }
  return variants;
}

std::vector<Variant> other_order(const Suspect& s) {
  if (!adds(s)) return {};
  return {variant(s, "slots are added in descending k", {.order = Order::kDescending}),
          variant(s, "slots are added in the order of their rows", {.order = Order::kByRow})};
}

std::vector<Variant> wide_sums(const Suspect& s) {
  if (!adds(s) || s.sizes.dtype == DType::kF64) return {};
  return {variant(s, "sums in float64, rounded once", {.wide = true})};
}

std::vector<Variant> fused_sums(const Suspect& s) {
  std::vector<Variant> variants;
  if (!adds(s) || !s.is("unpermute")) return variants;
  for (Order order : kOrders) {
    variants.push_back(variant(s, text("multiply and add round once, ", order_text(order)),
                               {.order = order, .fused = true}));
  }
  return variants;
}

std::vector<Variant> cut_results(const Suspect& s) {
  if (!adds(s) || s.sizes.dtype == DType::kF32 || s.sizes.dtype == DType::kF64) return {};
  return {variant(s, "results are cut, not rounded to nearest", {.cut = true})};
}

std::vector<Variant> means(const Suspect& s) {
  if (!adds(s) || s.sizes.top_k == 1) return {};
  return {variant(s, "sums are divided by top_k", {.scale = Scale::kTopK}),
          variant(s, "sums are divided by the number of the token's slots in the window",
                  {.scale = Scale::kCount})};
}

}  // namespace moe::tools
