// Sums of rows that slots name, token by token; compiled once per instruction set.
//
// The work is bound by memory, and memory is fast only when several rows are on their way at once.
// So a token's rows are read a line at a time, each row in turn, and tokens with few rows are taken
// in groups, some lines of each in turn. With every line, one is asked for that lies further on in
// the same row, or, towards the end of the row, at the start of the next group's rows. Tokens that
// read little are mostly taken one after another, and their rows are asked for several rows ahead.
// Rows of large windows are asked for once more, long before that, into the second-level cache. Few
// tokens of a small window have a loop of their own (few-inl.h).
#include <algorithm>

#include "core/fp_mode.h"
#include "cpu/few-inl.h"
#include "cpu/gather.h"
#include "cpu/groups-inl.h"
#include "cpu/last_target.h"
#include "cpu/token_sum-inl.h"
#include "cpu/tuning.h"

#if defined(MOE_CPU_GATHER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOE_CPU_GATHER_INL_H_
#undef MOE_CPU_GATHER_INL_H_
#else
#define MOE_CPU_GATHER_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace moe::cpu {
namespace HWY_NAMESPACE {

// Sums a group, and asks for the first lines of the next one.
template <class T, Store store, bool far, class Weight>
HWY_INLINE void sum_group(const Gather& g, const Group<Weight>& group, const Group<Weight>& next,
                          bool has_ends) {
  TokenSum<T, Weight, store, far> tokens[kMaxGroup];
  const int64_t num_tokens = group.end - group.begin;
  for (int64_t i = 0; i < num_tokens; ++i) {
    tokens[i] = {g, *group.batch, group.begin + i};
    if (has_ends) tokens[i].head();
  }
  const int64_t num_lines = (g.row_bytes + line_bytes() - 1) / line_bytes();
  const int64_t ahead = std::min(num_lines, ahead_bytes(group.num_rows()) / line_bytes());
  const int64_t turn = num_tokens == 1 ? num_lines : std::min(num_lines, kTurnBytes / line_bytes());
  const auto ask = [&](const Group<Weight>& from, int64_t shift) HWY_ATTR {
    int64_t row = 0;
    for (int64_t i = 0; i < num_tokens; ++i) {
      const int64_t row_end = row + tokens[i].num_rows();
      const bool fits = row_end <= from.num_rows();
      tokens[i].ask({(fits ? from.rows() : group.rows()) + row, fits ? shift * line_bytes() : 0});
      row = row_end;
    }
  };
  const auto pass = [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t line = begin; line < end; line += turn) {
      for (int64_t i = 0; i < num_tokens; ++i) tokens[i].lines(line, std::min(end, line + turn));
    }
  };
  ask(group, ahead);
  pass(0, num_lines - ahead);
  ask(next, ahead - num_lines);
  pass(num_lines - ahead, num_lines);
  for (int64_t i = group.num_rows(); i < next.num_rows(); ++i) {
    for (int64_t line = 0; line < ahead; ++line) fetch_line(next.rows()[i] + line * line_bytes());
  }
  for (int64_t i = 0; has_ends && i < num_tokens; ++i) tokens[i].tail(g.row_bytes);
}

template <class T, class Weight, Store store, bool far>
void gather_groups(const Gather& g, const Tokens& tokens) {
  const bool ends = has_ends<store>(g);
  Groups<Weight> groups(g, tokens);
  Group<Weight> group = groups.next();
  while (group.begin < group.end) {
    const Group<Weight> next = groups.next();
    sum_group<T, store, far>(g, group, next, ends);
    group = next;
  }
  groups.finish();
}

// Tokens that read little, one after another: with each line of a row, the same line of a row that
// many rows further on is asked for, or of the token after this one.
template <class T, class Weight, Store store, bool far>
void gather_narrow(const Gather& g, const Tokens& tokens) {
  const bool is_short = is_short_row(g.row_bytes), ends = has_ends<store>(g);
  const int64_t num_lines = (g.row_bytes + line_bytes() - 1) / line_bytes();
  const int64_t distance = rows_ahead(g.row_bytes);
  Batches<Weight> batches(g, tokens, std::max(g.far_rows, distance));
  while (const RowBatch<Weight>* const batch = batches.next()) {
    for (int64_t i = 0; i < batch->num_tokens; ++i) {
      TokenSum<T, Weight, store, far> token(g, *batch, i);
      if (is_short) {
        token.short_row(g.row_bytes);
        continue;
      }
      if (ends) token.head();
      token.ask({batch->rows_after(i, distance), 0});
      token.lines(0, num_lines);
      if (ends) token.tail(g.row_bytes);
    }
  }
  batches.finish();
}

// The chunks of a worker. Each is a part of what `whole` says, or takes all further ones along.
template <class T, class Weight, Store store, auto gather>
void gather_chunks(const Gather& whole, Chunks& chunks) {
  const FpMode mode;
  note_target(hwy::TargetName(HWY_TARGET));
  for (Chunk chunk; chunks.next(chunk);) {
    Gather g = whole;
    g.input += chunk.first_byte;
    g.row_bytes = chunk.last_byte - chunk.first_byte;
    g.out += chunk.first_byte;
    if (chunk.first_byte != 0) g.probs_out = nullptr;
    const Tokens tokens(chunk, chunks);
    // Which way was chosen for the first part of a row; the last one may be shorter than a vector.
    is_short_row(g.row_bytes) ? gather_narrow<T, Weight, store, false>(g, tokens)
                              : gather(g, tokens);
  }
  if (store == Store::kStreaming) hwy::FlushStream();
}

// Whether tokens are taken one after another, and not in groups.
inline bool is_narrow_gather(const Gather& g, int64_t part_bytes) {
  const bool is_full = g.rows_per_token >= static_cast<double>(g.slots.top_k);
  return !(is_full && part_bytes >= kGroupedFullRowBytes) && part_bytes <= kNarrowRowBytes &&
         g.rows_per_token * static_cast<double>(part_bytes) < kGroupedTokenBytes;
}

template <class T, class Weight, Store store, bool far>
GatherChunks* chunks_of(bool is_narrow) {
  return is_narrow ? gather_chunks<T, Weight, store, gather_narrow<T, Weight, store, far>>
                   : gather_chunks<T, Weight, store, gather_groups<T, Weight, store, far>>;
}

template <class T, class Weight, Store store>
GatherChunks* chunks_of(const Gather& g, bool is_narrow) {
  return g.far_rows ? chunks_of<T, Weight, store, true>(is_narrow)
                    : chunks_of<T, Weight, store, false>(is_narrow);
}

template <class T, class Weight>
GatherChunks* chunks_of(const Gather& g, int64_t part_bytes, bool streaming) {
  const bool is_narrow = is_narrow_gather(g, part_bytes);
  const double window_bytes =
      g.rows_per_token * static_cast<double>(g.num_tokens) * static_cast<double>(g.row_bytes);
  // Few tokens, where a group would be one of them. What they write is less than what they read.
  const bool is_few = !is_narrow && window_bytes < kFewWindowBytes && g.slots.top_k <= kFewSlots &&
                      g.rows_per_token >= static_cast<double>(kGroupRows);
  if (is_few) return gather_chunks<T, Weight, Store::kCached, gather_few<T, Weight>>;
  return streaming ? chunks_of<T, Weight, Store::kStreaming>(g, is_narrow)
                   : chunks_of<T, Weight, Store::kCached>(g, is_narrow);
}

inline GatherChunks* choose_gather(const Gather& g, int64_t part_bytes, bool streaming) {
  GatherChunks* chosen = nullptr;
  visit_float(g.dtype, [&](auto t) {
    using T = decltype(t);
    chosen = g.weighted ? chunks_of<T, Accumulator<T>>(g, part_bytes, streaming)
                        : chunks_of<T, NoWeight>(g, part_bytes, streaming);
  });
  return chosen;
}

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
