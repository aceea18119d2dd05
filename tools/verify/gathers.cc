// Mistakes of permute.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "verify/compare.h"
#include "verify/numbers.h"
#include "verify/rerun.h"

namespace moe::tools {
namespace {

// How a mistaken program fills its rows.
struct Gather {
  std::vector<int64_t> slot_of_row;  // of all global rows
  EpRange window;
  std::function<int64_t(int64_t slot)> token;
  std::function<int64_t(int64_t slot)> prob;  // which slot's prob
  bool indices = false;                       // sorted_indices follow slot_of_row
};

// The right way, to be changed in one thing.
Gather right(const Suspect& s) {
  return {.slot_of_row = inverse(s.rows),
          .window = s.sizes.window,
          .token = [k = s.sizes.top_k](int64_t slot) { return slot / k; },
          .prob = [](int64_t slot) { return slot; }};
}

void copy_row(const Operand& from, int64_t row, std::byte* to) {
  const auto width = static_cast<size_t>(dtype_bytes(from.desc.dtype));
  const auto at = [&](int64_t h) {
    return from.data +
           (row * from.desc.strides[0] + h * from.desc.strides[1]) * static_cast<int64_t>(width);
  };
  const int64_t n = from.desc.shape[1];
  if (from.desc.strides[1] == 1) {
    std::memcpy(to, at(0), static_cast<size_t>(n) * width);
    return;
  }
  for (int64_t h = 0; h < n; ++h) std::memcpy(to + static_cast<size_t>(h) * width, at(h), width);
}

// As many rows as theirs where those are like ours and at least the window's: a capacity.
OwnedTensor zero_rows(const Suspect& s, const char* name, int64_t num_window_rows) {
  const StoredTensor& ours = *s.our(name);
  std::vector<int64_t> shape = ours.shape;
  shape[0] = num_window_rows;
  const auto theirs = s.theirs.find(name);
  if (theirs != s.theirs.end() && has_rows_like(ours, theirs->second)) {
    shape[0] = std::max(shape[0], theirs->second.shape[0]);
  }
  OwnedTensor tensor = make_tensor(name, ours.dtype, shape);
  std::memset(tensor.memory.get(), 0, tensor.tensor.bytes.size());
  return tensor;
}

OwnedTensor gathered_tokens(const Suspect& s, const Gather& how) {
  const Operand& tokens = s.operands.at("tokens");
  OwnedTensor rows = zero_rows(s, "permuted_tokens", how.window.end - how.window.begin);
  const int64_t row_bytes = s.sizes.hidden_size * dtype_bytes(tokens.desc.dtype);
  for (int64_t row = how.window.begin; row < how.window.end && row_bytes > 0; ++row) {
    const int64_t token = how.token(how.slot_of_row[static_cast<size_t>(row)]);
    copy_row(tokens, token, rows.memory.get() + (row - how.window.begin) * row_bytes);
  }
  return rows;
}

OwnedTensor gathered_probs(const Suspect& s, const Gather& how) {
  const Operand& probs = s.operands.at("probs");
  const FileDType dtype = file_dtype(probs.desc.dtype);
  OwnedTensor rows = zero_rows(s, "permuted_probs", how.window.end - how.window.begin);
  for (int64_t row = how.window.begin; row < how.window.end; ++row) {
    const int64_t slot = how.prob(how.slot_of_row[static_cast<size_t>(row)]), k = s.sizes.top_k;
    const int64_t at = probs.desc.num_dims == 1
                           ? slot * probs.desc.strides[0]
                           : slot / k * probs.desc.strides[0] + slot % k * probs.desc.strides[1];
    store_number(dtype, rows.memory.get(), row - how.window.begin,
                 load_number(dtype, probs.data, at));
  }
  return rows;
}

OwnedTensor indices_tensor(const Suspect& s, const std::vector<int64_t>& values) {
  const FileDType dtype = s.our("sorted_indices")->dtype;
  OwnedTensor tensor = make_tensor("sorted_indices", dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) {
    store_number(dtype, tensor.memory.get(), static_cast<int64_t>(i),
                 static_cast<double>(values[i]));
  }
  return tensor;
}

std::optional<Outcome> gathered(const Suspect& s, const Gather& how) {
  const auto [begin, end] = how.window;
  if (begin < 0 || begin > end || end > s.num_slots()) return {};
  if (how.slot_of_row.size() != static_cast<size_t>(s.num_slots())) return {};
  Outcome outcome{.expected = {gathered_tokens(s, how)}};
  if (s.our("permuted_probs")) outcome.expected.push_back(gathered_probs(s, how));
  if (how.indices) outcome.expected.push_back(indices_tensor(s, inverse(how.slot_of_row)));
  return outcome;
}

// Nothing where the outcome differs from ours in zeros behind it at most: that is no mistake.
std::optional<Outcome> if_changed(const Suspect& s, std::optional<Outcome> outcome) {
  const auto is_ours = [&](const OwnedTensor& each) {
    const auto ours = s.our(each.tensor.name)->bytes, now = each.tensor.bytes;
    return now.size() >= ours.size() && std::equal(ours.begin(), ours.end(), now.begin()) &&
           all_zero(now.subspan(ours.size()));
  };
  if (outcome && std::all_of(outcome->expected.begin(), outcome->expected.end(), is_ours))
    return {};
  return outcome;
}

Variant variant(const Suspect& s, std::string detail, Gather how) {
  return {std::move(detail),
          [&s, how = std::move(how)] { return if_changed(s, gathered(s, how)); }};
}

Variant with_window(const Suspect& s, std::string detail, int64_t begin, int64_t end) {
  Gather how = right(s);
  how.window = {begin, end};
  return variant(s, std::move(detail), std::move(how));
}

bool routed(const Suspect& s, int64_t expert) {
  return expert >= 0 && expert <= INT32_MAX && expert < s.settings.num_experts.value_or(INT64_MAX);
}

// Slots by `key`, equal ones in the order of `first`.
template <class Key>
std::vector<int64_t> sorted_slots(const Suspect& s, std::vector<int64_t> first, Key&& key) {
  std::stable_sort(first.begin(), first.end(), [&](int64_t a, int64_t b) {
    return key(s.experts[static_cast<size_t>(a)]) < key(s.experts[static_cast<size_t>(b)]);
  });
  return first;
}

std::vector<int64_t> ascending(const Suspect& s) {
  std::vector<int64_t> slots(static_cast<size_t>(s.num_slots()));
  std::iota(slots.begin(), slots.end(), int64_t{0});
  return slots;
}

}  // namespace

std::vector<Variant> gather_window(const Suspect& s) {
  std::vector<Variant> variants;
  if (!s.is("permute")) return variants;
  const auto [begin, end] = s.sizes.window;
  for (const int64_t by : {-1, 1}) {
    const std::string begins = text("the window begins at row ", begin + by, " instead of ", begin);
    variants.push_back(with_window(s, begins, begin + by, end));
    variants.push_back(with_window(s, begins + " and is as long", begin + by, end + by));
    variants.push_back(with_window(
        s, text("the window ends at row ", end + by, " instead of ", end), begin, end + by));
  }
  return variants;
}

std::vector<Variant> gather_other_rank(const Suspect& s) {
  std::vector<Variant> variants;
  if (!s.is("permute") || !s.rank || s.rank->num_ranks > 64) return variants;
  for (int64_t rank = 0; rank < s.rank->num_ranks; ++rank) {
    if (rank == s.rank->rank) continue;
    const EpRange window =
        ep_range_of_rank(std::span<const int64_t>(s.counts), rank, s.rank->num_ranks);
    variants.push_back(with_window(s, text("the window of rank ", rank, " of ", s.rank->num_ranks),
                                   window.begin, window.end));
  }
  return variants;
}

std::vector<Variant> gather_window_times_top_k(const Suspect& s) {
  const auto [begin, end] = s.sizes.window;
  const int64_t k = s.sizes.top_k;
  if (!s.is("permute") || k == 1) return {};
  return {with_window(s, text("the window [", begin * k, ", ", end * k, ")"), begin * k, end * k),
          with_window(s, text("the window [", begin / k, ", ", end / k, ")"), begin / k, end / k)};
}

std::vector<Variant> gather_window_ignored(const Suspect& s) {
  if (!s.is("permute")) return {};
  return {with_window(s, text("all ", s.num_slots(), " rows instead of the window's"), 0,
                      s.num_slots())};
}

std::vector<Variant> gather_argsort(const Suspect& s) {
  if (!s.is("permute")) return {};
  Gather rows = right(s);
  rows.slot_of_row = s.rows;
  const std::vector<int64_t> order = inverse(s.rows);
  return {
      {"sorted_indices is the argsort (the slot of each row); needed is its inverse (the row "
       "of each slot)",
       [&s, order] { return Outcome{.expected = {indices_tensor(s, order)}}; }},
      variant(s, "rows are gathered by sorted_indices itself, where its inverse belongs", rows)};
}

std::vector<Variant> gather_slots_transposed(const Suspect& s) {
  if (!s.is("permute") || s.sizes.top_k == 1) return {};
  const int64_t k = s.sizes.top_k, tokens = s.sizes.num_tokens;
  // The slots in the order k first, and the names that program gives them: k * T + t.
  std::vector<int64_t> first = ascending(s);
  std::stable_sort(first.begin(), first.end(), [&](int64_t a, int64_t b) { return a % k < b % k; });
  const auto key = [&s](int64_t expert) { return routed(s, expert) ? expert : INT64_MAX; };
  Gather rows = right(s);
  rows.slot_of_row = sorted_slots(s, first, key);
  std::vector<int64_t> named = rows.slot_of_row;
  for (int64_t& slot : named) slot = slot % k * tokens + slot / k;
  return {{"slots are counted as [K, T], k first", [&s, rows, named]() -> std::optional<Outcome> {
             auto outcome = gathered(s, rows);
             if (outcome) outcome->expected.push_back(indices_tensor(s, inverse(named)));
             return if_changed(s, std::move(outcome));
           }}};
}

std::vector<Variant> gather_wrong_tokens(const Suspect& s) {
  if (!s.is("permute") || s.sizes.top_k == 1 || s.sizes.num_tokens == 0) return {};
  Gather remainder = right(s), undivided = right(s), by_token = right(s);
  remainder.token = [n = s.sizes.num_tokens](int64_t slot) { return slot % n; };
  undivided.token = [n = s.sizes.num_tokens](int64_t slot) { return std::min(slot, n - 1); };
  by_token.prob = [k = s.sizes.top_k](int64_t slot) { return slot / k; };
  return {
      variant(s, "a slot's token is taken as slot % num_tokens instead of slot / top_k", remainder),
      variant(s, "a slot is used as a token, without dividing by top_k", undivided),
      variant(s, "permuted_probs takes the prob of number slot / top_k", by_token)};
}

std::vector<Variant> gather_not_permuted(const Suspect& s) {
  if (!s.is("permute")) return {};
  Gather plain = right(s), probs = right(s);
  plain.slot_of_row = ascending(s);
  const std::vector<int64_t> rows = s.rows;
  probs.prob = [rows](int64_t slot) { return rows[static_cast<size_t>(slot)]; };
  return {variant(s, "tokens are repeated top_k times but not sorted by expert", plain),
          variant(s, "permuted_probs are not sorted by expert", probs)};
}

std::vector<Variant> gather_descending(const Suspect& s) {
  if (!s.is("permute")) return {};
  Gather how = right(s);
  how.indices = true;
  how.slot_of_row = sorted_slots(
      s, ascending(s), [&](int64_t expert) { return routed(s, expert) ? -expert : INT64_MAX; });
  return {variant(s, "experts are sorted in descending order", how)};
}

std::vector<Variant> gather_unrouted_first(const Suspect& s) {
  if (!s.is("permute")) return {};
  Gather how = right(s);
  how.indices = true;
  how.slot_of_row = sorted_slots(s, ascending(s), [](int64_t expert) { return expert; });
  return {variant(s, "slots that are not routed are sorted by their ids instead of last", how)};
}

std::vector<Variant> gather_unstable(const Suspect& s) {
  const auto theirs = s.theirs.find("sorted_indices");
  if (!s.is("permute") || theirs == s.theirs.end()) return {};
  if (theirs->second.dtype != s.our("sorted_indices")->dtype) return {};
  std::vector<int64_t> rows(static_cast<size_t>(s.num_slots()));
  if (theirs->second.shape != std::vector<int64_t>{s.num_slots()}) return {};
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<int64_t>(
        load_number(theirs->second.dtype, theirs->second.bytes.data(), static_cast<int64_t>(i)));
  }
  Gather how = right(s);
  how.indices = true;
  how.slot_of_row = inverse(rows);
  const auto key = [&](int64_t slot) {
    const int64_t expert = s.experts[static_cast<size_t>(slot)];
    return routed(s, expert) ? expert : INT64_MAX;
  };
  const bool sorted = std::is_sorted(how.slot_of_row.begin(), how.slot_of_row.end(),
                                     [&](int64_t a, int64_t b) { return key(a) < key(b); });
  if (how.slot_of_row.empty() || !sorted) return {};
  return {variant(
      s, "slots of the same expert are not in the order of slots: the sort is not stable", how)};
}

std::vector<Variant> indices_of_window(const Suspect& s) {
  if (!s.is("permute")) return {};
  const auto [begin, end] = s.sizes.window;
  std::vector<int64_t> relative = s.rows, masked = s.rows;
  for (int64_t& row : relative) row -= begin;
  for (int64_t& row : masked) row = row >= begin && row < end ? row - begin : -1;
  std::vector<int64_t> order = inverse(s.rows);
  if (order.empty() || end > s.num_slots()) return {};
  order = {order.begin() + begin, order.begin() + end};
  const auto only = [&s](std::string detail, const std::vector<int64_t>& values) {
    return Variant{std::move(detail),
                   [&s, values] { return Outcome{.expected = {indices_tensor(s, values)}}; }};
  };
  return {only("sorted_indices count from the window's begin instead of from row 0", relative),
          only("sorted_indices count from the window's begin, and are -1 outside", masked),
          only("sorted_indices are the argsort, cut to the window", order)};
}

}  // namespace moe::tools
