// Right values, handed over wrongly: in a buffer of another size, shape or type, or not at all.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "verify/compare.h"
#include "verify/numbers.h"
#include "verify/rerun.h"

namespace moe::tools {
namespace {

// Calls fn(ours, theirs) for each tensor of theirs, and collects what it gives.
template <class Fn>
std::vector<OwnedTensor> collect(const Suspect& s, Fn&& fn) {
  std::vector<OwnedTensor> found;
  for (const auto& [name, theirs] : s.theirs) {
    std::optional<OwnedTensor> one = fn(*s.our(name), theirs);
    if (one) found.push_back(std::move(*one));
  }
  return found;
}

Variant put_right(std::string detail, std::vector<OwnedTensor> theirs) {
  return {std::move(detail), [theirs = std::move(theirs)] { return Outcome{.theirs = theirs}; }};
}

// Theirs cut to our rows, where they have `wanted` rows (or any other number: -1).
std::vector<Variant> cut_to_rows(const Suspect& s, bool times_top_k) {
  std::string detail;
  std::vector<OwnedTensor> cut =
      collect(s, [&](const auto& ours, const auto& theirs) -> std::optional<OwnedTensor> {
        if (!has_rows_like(ours, theirs) || theirs.shape[0] <= ours.shape[0]) return {};
        if ((theirs.shape[0] == ours.shape[0] * s.sizes.top_k && s.sizes.top_k > 1) != times_top_k)
          return {};
        OwnedTensor first{theirs, nullptr};
        first.tensor.shape = ours.shape;
        first.tensor.bytes = theirs.bytes.first(ours.bytes.size());
        const bool zeros = all_zero(theirs.bytes.subspan(ours.bytes.size()));
        detail = text("the buffer has ", theirs.shape[0], " rows, the window ", ours.shape[0],
                      "; the first ", ours.shape[0], " are right, the others ",
                      zeros ? "zero" : "hold something else");
        return first;
      });
  if (cut.empty()) return {};
  return {put_right(detail, std::move(cut))};
}

OwnedTensor transposed(const StoredTensor& from) {
  OwnedTensor to = make_tensor(from.name, from.dtype, {from.shape[1], from.shape[0]});
  const auto width = static_cast<size_t>(facts(from.dtype).bits / 8);
  const auto rows = static_cast<size_t>(from.shape[0]),
             columns = static_cast<size_t>(from.shape[1]);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      std::memcpy(to.memory.get() + (j * rows + i) * width,
                  from.bytes.data() + (i * columns + j) * width, width);
    }
  }
  return to;
}

// Our elements, each changed; floating tensors only.
template <class Change>
std::vector<OwnedTensor> changed(const Suspect& s, Change&& change) {
  return collect(s, [&](const auto& ours, const auto&) -> std::optional<OwnedTensor> {
    if (!is_float(ours.dtype)) return {};
    OwnedTensor to = make_tensor(ours.name, ours.dtype, ours.shape);
    const auto count = num_elements(ours);
    for (int64_t i = 0; i < count; ++i) {
      store_number(ours.dtype, to.memory.get(), i,
                   change(ours, load_number(ours.dtype, ours.bytes.data(), i)));
    }
    return to;
  });
}

double smallest_normal(FileDType dtype) {
  if (dtype == FileDType::kF16) return 0x1p-14;
  return dtype == FileDType::kF64 ? 0x1p-1022 : 0x1p-126;
}

// theirs / ours at our largest element, and nothing where that says nothing.
std::optional<double> factor(const StoredTensor& ours, const StoredTensor& theirs) {
  if (ours.dtype != theirs.dtype || ours.shape != theirs.shape || !is_float(ours.dtype)) return {};
  double largest = 0, ratio = 0;
  const auto count = num_elements(ours);
  for (int64_t i = 0; i < count; ++i) {
    const double a = load_number(ours.dtype, ours.bytes.data(), i);
    if (!std::isfinite(a) || std::fabs(a) <= largest) continue;
    largest = std::fabs(a);
    ratio = load_number(theirs.dtype, theirs.bytes.data(), i) / a;
  }
  if (!std::isfinite(ratio) || ratio == 0 || std::fabs(ratio - 1) < 0.01) return {};
  return ratio;
}

// The simple number that a measured ratio stands for: n or 1/n, where it is one within rounding.
double simple(double ratio, FileDType dtype) {
  const double inverse = 1 / ratio, tolerance = 8 * half_ulp_of_one(dtype);
  if (std::fabs(inverse - std::round(inverse)) < tolerance * std::fabs(inverse)) {
    return 1 / std::round(inverse);
  }
  return std::fabs(ratio - std::round(ratio)) < tolerance * std::fabs(ratio) ? std::round(ratio)
                                                                             : ratio;
}

}  // namespace

std::vector<Variant> padded_buffer(const Suspect& s) { return cut_to_rows(s, false); }
std::vector<Variant> padded_by_top_k(const Suspect& s) { return cut_to_rows(s, true); }

std::vector<Variant> tokens_left_out(const Suspect& s) {
  const char* name = s.is("permute-grad") ? "tokens_grad" : "out";
  if (!s.our(name) || s.theirs.count(name) == 0) return {};
  return {
      {"tokens without a row in the window are left out; they belong there, as zeros", [&s, name] {
         const StoredTensor& ours = *s.our(name);
         const auto [begin, end] = s.sizes.window;
         const size_t row_bytes =
             static_cast<size_t>(s.sizes.hidden_size * facts(ours.dtype).bits / 8);
         std::vector<int64_t> kept;
         for (int64_t slot = 0; slot < s.num_slots(); ++slot) {
           const int64_t row = s.rows[static_cast<size_t>(slot)], token = slot / s.sizes.top_k;
           if (row >= begin && row < end && (kept.empty() || kept.back() != token))
             kept.push_back(token);
         }
         OwnedTensor to = make_tensor(name, ours.dtype,
                                      {static_cast<int64_t>(kept.size()), s.sizes.hidden_size});
         for (size_t i = 0; i < kept.size(); ++i) {
           std::memcpy(to.memory.get() + i * row_bytes,
                       ours.bytes.data() + static_cast<size_t>(kept[i]) * row_bytes, row_bytes);
         }
         return Outcome{.expected = {to}};
       }}};
}

std::vector<Variant> matrix_transposed(const Suspect& s) {
  std::vector<OwnedTensor> right =
      collect(s, [&](const auto& ours, const auto& theirs) -> std::optional<OwnedTensor> {
        if (theirs.shape.size() != 2 || ours.shape.size() != 2 || facts(theirs.dtype).bits % 8 != 0)
          return {};
        if (theirs.shape[0] != ours.shape[1] || theirs.shape[1] != ours.shape[0]) return {};
        return transposed(theirs);
      });
  if (right.empty()) return {};
  return {put_right("rows and columns are exchanged", std::move(right))};
}

std::vector<Variant> other_dtype(const Suspect& s) {
  std::string detail;
  std::vector<OwnedTensor> right =
      collect(s, [&](const auto& ours, const auto& theirs) -> std::optional<OwnedTensor> {
        const bool fits = is_number(theirs.dtype) && is_number(ours.dtype) &&
                          theirs.dtype != ours.dtype && theirs.shape == ours.shape &&
                          is_float(theirs.dtype) == is_float(ours.dtype);
        if (!fits) return {};
        detail = text("theirs is ", facts(theirs.dtype).name, ", and right once converted to ",
                      facts(ours.dtype).name);
        OwnedTensor to = make_tensor(ours.name, ours.dtype, ours.shape);
        const auto count = num_elements(ours);
        for (int64_t i = 0; i < count; ++i) {
          store_number(ours.dtype, to.memory.get(), i,
                       load_number(theirs.dtype, theirs.bytes.data(), i));
        }
        return to;
      });
  if (right.empty()) return {};
  return {put_right(detail, std::move(right))};
}

std::vector<Variant> never_written(const Suspect& s) {
  return {{"all elements are zero", [&s] {
             Outcome outcome;
             outcome.expected =
                 collect(s, [](const auto& ours, const auto& theirs) -> std::optional<OwnedTensor> {
                   if (!all_zero(theirs.bytes) || all_zero(ours.bytes)) return {};
                   OwnedTensor to = make_tensor(ours.name, ours.dtype, ours.shape);
                   std::memset(to.memory.get(), 0, to.tensor.bytes.size());
                   return to;
                 });
             return outcome;
           }}};
}

std::vector<Variant> zero_signs(const Suspect&) {
  return {{"zeros of the other sign, nothing else", [] { return Outcome{}; }}};
}

std::vector<Variant> subnormals_flushed(const Suspect& s) {
  return {{"numbers too small to be normal are zero", [&s] {
             return Outcome{.expected = changed(s, [](const StoredTensor& ours, double x) {
                              return std::fabs(x) < smallest_normal(ours.dtype)
                                         ? std::copysign(0.0, x)
                                         : x;
                            })};
           }}};
}

std::vector<Variant> constant_factor(const Suspect& s) {
  std::vector<Variant> variants;
  for (const auto& [name, theirs] : s.theirs) {
    const auto ratio = factor(*s.our(name), theirs);
    if (!ratio) continue;
    const double by = simple(*ratio, theirs.dtype);
    variants.push_back({text("every element is ", by, " times what it should be"), [&s, by] {
                          return Outcome{.expected = changed(s, [by](const StoredTensor&,
                                                                     double x) { return x * by; })};
                        }});
  }
  return variants;
}

}  // namespace moe::tools
