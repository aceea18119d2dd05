// Mistakes with slots, in the operators that read sorted_indices.
#include "cli/input_options.h"
#include "verify/numbers.h"
#include "verify/rerun.h"

namespace moe::tools {
namespace {

// The row of the buffer for a global row.
int64_t in_window(const Suspect& s, int64_t row) {
  const auto [begin, end] = s.sizes.window;
  return row >= begin && row < end ? row - begin : -1;
}

int64_t row_of(const Suspect& s, int64_t slot) {
  return in_window(s, s.rows[static_cast<size_t>(slot)]);
}

// Where slot (t, k) lies when slots run over tokens first.
int64_t transposed(const Suspect& s, int64_t slot) {
  return slot % s.sizes.top_k * s.sizes.num_tokens + slot / s.sizes.top_k;
}

// Their probs_grad, written slot by slot in that other order, put right.
std::optional<OwnedTensor> probs_grad_put_right(const Suspect& s) {
  const auto found = s.theirs.find("probs_grad");
  if (found == s.theirs.end() || !is_number(found->second.dtype)) return {};
  const StoredTensor& theirs = found->second;
  const size_t width = static_cast<size_t>(facts(theirs.dtype).bits / 8);
  if (theirs.bytes.size() != static_cast<size_t>(s.num_slots()) * width) return {};
  OwnedTensor right = make_tensor("probs_grad", theirs.dtype, {s.sizes.num_tokens, s.sizes.top_k});
  for (int64_t slot = 0; slot < s.num_slots(); ++slot) {
    const auto from = static_cast<size_t>(transposed(s, slot)) * width;
    std::copy_n(theirs.bytes.begin() + static_cast<std::ptrdiff_t>(from), width,
                right.memory.get() + static_cast<size_t>(slot) * width);
  }
  return right;
}

// One of a token's slots in the window; -1 for the others.
template <class Better>
std::optional<Outcome> only_slot(const Suspect& s, Better&& better) {
  std::vector<int64_t> kept(static_cast<size_t>(s.sizes.num_tokens), -1);
  for (int64_t slot = 0; slot < s.num_slots(); ++slot) {
    int64_t& best = kept[static_cast<size_t>(slot / s.sizes.top_k)];
    if (row_of(s, slot) >= 0 && (best < 0 || better(slot, best))) best = slot;
  }
  return rerun_with_rows(
      s,
      [&](int64_t slot) {
        return kept[static_cast<size_t>(slot / s.sizes.top_k)] == slot ? row_of(s, slot) : -1;
      },
      {"tokens_grad", "out"});
}

}  // namespace

std::vector<Variant> argsort_for_inverse(const Suspect& s) {
  const std::vector<int64_t> other = inverse(s.rows);
  if (other.empty() || s.is("permute")) return {};
  return {
      {"the result follows the inverse of the given sorted_indices: one of the two is the "
       "argsort (the slot of each row) where the row of each slot belongs",
       [&s, other] {
         return rerun_with_rows(
             s, [&](int64_t slot) { return in_window(s, other[static_cast<size_t>(slot)]); });
       }}};
}

std::vector<Variant> slots_transposed(const Suspect& s) {
  if (s.is("permute") || s.sizes.top_k == 1) return {};
  const auto rows = [&s](int64_t slot) { return row_of(s, transposed(s, slot)); };
  return {{"sorted_indices is read as [K, T]", [&s, rows] { return rerun_with_rows(s, rows); }},
          {"sorted_indices is read, and probs_grad written, as [K, T]",
           [&s, rows]() -> std::optional<Outcome> {
             auto right = probs_grad_put_right(s);
             if (!right) return {};
             auto outcome = rerun_with_rows(s, rows);
             if (outcome) outcome->theirs.push_back(*right);
             return outcome;
           }},
          {"probs_grad is written as [K, T]", [&s]() -> std::optional<Outcome> {
             auto right = probs_grad_put_right(s);
             if (!right) return {};
             return Outcome{.theirs = {*right}};
           }}};
}

std::vector<Variant> one_slot_only(const Suspect& s) {
  if (s.sizes.top_k == 1 || !(s.is("permute-grad") || s.is("unpermute"))) return {};
  const auto row = [&s](int64_t slot) { return s.rows[static_cast<size_t>(slot)]; };
  return {{"each token has its last slot's row alone: rows are assigned instead of added",
           [&s] { return only_slot(s, [](int64_t, int64_t) { return true; }); }},
          {"each token has its last row alone: rows are assigned instead of added",
           [&s, row] {
             return only_slot(s, [&](int64_t slot, int64_t best) { return row(slot) > row(best); });
           }},
          {"each token has its first slot's row alone",
           [&s] { return only_slot(s, [](int64_t, int64_t) { return false; }); }}};
}

}  // namespace moe::tools
