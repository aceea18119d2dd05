// The tokens of a small window, one at a time; compiled once per instruction set.
//
// A call that moves little takes about as long to read its own code from memory as to read its
// rows. So this is one short loop: a token's slots are looked up one by one, and its rows are
// summed from end to end, while those of the next token are known.
#include <algorithm>

#include "core/dtypes.h"
#include "cpu/groups-inl.h"
#include "cpu/token_sum-inl.h"
#include "cpu/tuning.h"

#if defined(MOE_CPU_FEW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOE_CPU_FEW_INL_H_
#undef MOE_CPU_FEW_INL_H_
#else
#define MOE_CPU_FEW_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace moe::cpu {
namespace HWY_NAMESPACE {

// A token, and where its rows lie.
template <class Weight>
struct FewRows {
  int64_t token;
  int64_t num_rows = 0;
  const uint8_t* rows[kFewSlots];
  Weight weights[kFewSlots];       // at first those of its slots, then those of its rows
  int64_t row_of_slot[kFewSlots];  // of the window, or kOutside

  static constexpr int64_t kOutside = -1;
};

// False at the end, where there are no rows.
template <class Weight>
HWY_INLINE bool find_rows(const Gather& g, Tokens& tokens, FewRows<Weight>& found) {
  found.num_rows = 0;
  if (!tokens.any()) return false;
  found.token = tokens.take(1).first;
  if constexpr (kWeighted<Weight>) widen_probs(g.slots, found.token, 1, found.weights);
  const SlotSource& slots = g.slots;
  const bool wide = slots.index_dtype == DType::kI64;  // rather asked for each slot than two loops
  for (int64_t k = 0; k < slots.top_k; ++k) {
    const int64_t at = (found.token * slots.top_k + k) * slots.index_stride;
    const int64_t index =
        wide ? load<int64_t>(slots.indices, at) : load<int32_t>(slots.indices, at);
    const bool inside = index >= slots.window.begin && index < slots.window.end;
    found.row_of_slot[k] = FewRows<Weight>::kOutside;
    if (!inside) continue;
    const int64_t row = found.row_of_slot[k] = index - slots.window.begin;
    if (g.probs_out) hwy::Prefetch(static_cast<const char*>(g.probs) + row * g.probs_step);
    if constexpr (kWeighted<Weight>) {
      if (found.weights[k] == 0) continue;
      found.weights[found.num_rows] = found.weights[k];
    }
    found.rows[found.num_rows++] = g.input + row * g.input_step;
  }
  return true;
}

// Asks for the first bytes of each row.
template <class Weight>
HWY_INLINE void fetch_starts(const Gather& g, const FewRows<Weight>& found) {
  for (int64_t h = 0; h < std::min(g.row_bytes, kRowAheadBytes); h += line_bytes()) {
    HWY_UNROLL(1)
    for (int64_t i = 0; i < found.num_rows; ++i) fetch_line(found.rows[i] + h);
  }
}

// A number for each slot, if there are any.
template <class Weight>
HWY_INLINE void copy_probs(const Gather& g, const FewRows<Weight>& found) {
  if (!g.probs_out) return;
  visit_bytes(g.probs_dtype, [&](auto bits) {
    using Bits = decltype(bits);
    const auto* const probs = static_cast<const char*>(g.probs);
    for (int64_t k = 0; k < g.slots.top_k; ++k) {
      const bool inside = found.row_of_slot[k] != FewRows<Weight>::kOutside;
      const Bits prob =
          inside ? load<Bits>(probs + found.row_of_slot[k] * g.probs_step, 0) : Bits{0};
      moe::store(g.probs_out, found.token * g.slots.top_k + k, prob);
    }
  });
}

// Sums a token, and asks for the first lines of the next one's rows.
template <class T, class Weight>
HWY_INLINE void sum_token(const Gather& g, const FewRows<Weight>& found,
                          const FewRows<Weight>& next, bool has_tail) {
  TokenSum<T, Weight, Store::kCached, false> sum(g, found.token, found.rows, found.weights,
                                                 found.num_rows);
  const int64_t num_lines = (g.row_bytes + line_bytes() - 1) / line_bytes();
  const int64_t ahead = std::min(num_lines, ahead_bytes(found.num_rows) / line_bytes());
  int64_t begin = 0, end = num_lines - ahead;
  sum.ask({found.rows, ahead * line_bytes()});
  HWY_UNROLL(1)
  for (int part = 0; part < 2; ++part) {
    sum.lines(begin, end);
    begin = end, end = num_lines;
    sum.ask(next.num_rows < found.num_rows ? Ahead{found.rows, 0}
                                           : Ahead{next.rows, (ahead - num_lines) * line_bytes()});
  }
  if (has_tail) sum.tail(g.row_bytes);
}

// All tokens of a gather that reads no rows far ahead, of at most kFewSlots experts each.
template <class T, class Weight>
void gather_few(const Gather& g, Tokens tokens) {
  const bool has_tail = g.row_bytes % line_bytes() != 0;
  FewRows<Weight> places[2];
  bool any = false, more = true;
  HWY_UNROLL(1)
  for (int64_t i = 0; any || more; ++i) {  // so that each part of this stands here once
    const FewRows<Weight>& found = places[i % 2];
    FewRows<Weight>& next = places[(i + 1) % 2];
    more = find_rows(g, tokens, next);
    if (any) {
      sum_token<T>(g, found, next, has_tail);
      copy_probs(g, found);
    } else {
      fetch_starts(g, next);
    }
    any = more;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
