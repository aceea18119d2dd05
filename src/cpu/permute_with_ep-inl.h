// The kernel text of PermuteWithEp, compiled once per instruction set.
//
// Contract: takes any problem with inner stride 1 and at most kMaxRows experts per token; writes
// the bytes of its chunk in the window's rows that its tokens lead to, and nothing else; reads the
// rows of tokens that have a row in the window (prefetches aside, which never fault).
//
// A token's row is read from memory once: some lines of it go to all its rows before the next
// ones. Memory is fast only when several rows are on their way at once, so tokens are copied in
// groups, some lines of each in turn. With every line, one is asked for that lies further on in the
// same row, or, towards the end of the row, at the start of a row of the next group. Where a rank
// reads much, rows are asked for once more, long before that, into the second-level cache. Narrow
// rows are copied one after another, and asked for several rows ahead.
#include <algorithm>

#include "core/dtypes.h"
#include "core/fp_mode.h"
#include "cpu/copy-inl.h"
#include "cpu/copy_groups-inl.h"
#include "cpu/permute_with_ep.h"
#include "cpu/row_kernels.h"
#include "cpu/tuning.h"

#if defined(MOE_CPU_PERMUTE_WITH_EP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOE_CPU_PERMUTE_WITH_EP_INL_H_
#undef MOE_CPU_PERMUTE_WITH_EP_INL_H_
#else
#define MOE_CPU_PERMUTE_WITH_EP_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace moe::cpu {
namespace HWY_NAMESPACE {

// The lines [begin, end) of a token's row, to all its rows. With each, the same line of `ahead` is
// asked for, and of `far`, if that is not null, into the second-level cache.
template <Store store>
HWY_INLINE void copy_token(const Copying& copying, const Copies& copies, int64_t token,
                           int64_t begin, int64_t end, const uint8_t* ahead, const uint8_t* far) {
  const int64_t row_bytes = copying.row_bytes;
  const uint8_t* const source = copies.sources[token];
  const auto copy = [&](int32_t i, auto asks) HWY_ATTR {
    uint8_t* const to = copying.out + copies.slots.row[i] * copying.out_step;
    const int64_t head = head_bytes<store>(to);
    copy_lines<store>(source, to, begin + head, std::min(end + head, row_bytes), asks);
  };
  int32_t i = copies.begin[token];
  far ? copy(i, TwoRowsAhead{ahead, far}) : copy(i, RowAhead{ahead});
  while (++i < copies.begin[token + 1]) copy(i, NoAhead{});
}

// Copies a group, and asks for the first lines of the next one.
template <Store store>
HWY_INLINE void copy_group(const Copying& copying, const CopyGroup& group, const CopyGroup& next) {
  const int64_t row_bytes = copying.row_bytes, num_tokens = group.num_tokens();
  const int64_t turn = kCopyTurnBytes, line = whole_line_bytes();
  const int64_t ahead = std::min(row_bytes, turn) / line * line;
  // Not inlined, which would take a twentieth to a tenth off a rank of 8.
  const auto pass = [&](int64_t begin, int64_t end, const CopyGroup& from,
                        int64_t shift) HWY_ATTR HWY_NOINLINE {
    for (; begin < end; begin += turn) {
      for (int64_t i = 0; i < num_tokens; ++i) {
        const uint8_t* row = i < from.num_tokens() ? from.source(i) + shift : group.source(i);
        copy_token<store>(copying, *group.copies, group.begin + i, begin,
                          std::min(begin + turn, end), row, group.far_source(i, copying.far_rows));
      }
    }
  };
  const int64_t lines = (row_bytes + line - 1) / line * line;
  pass(0, lines - ahead, group, ahead);
  pass(lines - ahead, lines, next, ahead - lines);
  for (int64_t i = num_tokens; i < next.num_tokens(); ++i) {
    for (int64_t h = 0; h < ahead; h += line_bytes()) fetch_line(next.source(i) + h);
  }
}

// Calls copy(from, to) for each row of the tokens [begin, end).
template <class Copy>
HWY_INLINE void for_each_row(const Copying& copying, const Copies& copies, int64_t begin,
                             int64_t end, Copy&& copy) {
  if (copying.row_bytes == 0) return;  // there may be no memory at all
  for (int64_t token = begin; token < end; ++token) {
    for (int32_t i = copies.begin[token]; i < copies.begin[token + 1]; ++i) {
      copy(copies.sources[token], copying.out + copies.slots.row[i] * copying.out_step);
    }
  }
}

// What whole lines leave.
template <Store store>
HWY_NOINLINE void copy_all_ends(const Copying& copying, const Copies& copies, int64_t begin,
                                int64_t end) {
  for_each_row(copying, copies, begin, end, [&](const uint8_t* from, uint8_t* to) HWY_ATTR {
    copy_ends<store>(from, to, copying.row_bytes);
  });
}

template <Store store>
void copy_in_groups(const Copying& copying, bool has_ends) {
  CopyGroups groups(copying);
  CopyGroup group = groups.next();
  while (group.num_tokens() > 0) {
    const CopyGroup next = groups.next();
    copy_group<store>(copying, group, next);
    if (has_ends) copy_all_ends<store>(copying, *group.copies, group.begin, group.end);
    group = next;
  }
  groups.finish();
}

// Narrow rows, token by token: with each line of one, the same line of one further on.
template <Store store>
void copy_narrow(const Copying& copying, bool has_ends) {
  const int64_t distance = rows_ahead(copying.row_bytes);
  CopyBatches batches(copying);
  Copies* copies = batches.next();
  while (copies->num_tokens > 0) {
    Copies* const next = batches.next();
    copies->append_sources(*next, copying.input);
    if (is_short_row(copying.row_bytes)) {
      for_each_row(copying, *copies, 0, copies->num_tokens, [&](const uint8_t* from, uint8_t* to) {
        std::memcpy(to, from, static_cast<size_t>(copying.row_bytes));
      });
    } else {
      for (int64_t token = 0; token < copies->num_tokens; ++token) {
        copy_token<store>(copying, *copies, token, 0, copying.row_bytes,
                          copies->sources[token + distance], nullptr);
      }
      if (has_ends) copy_all_ends<store>(copying, *copies, 0, copies->num_tokens);
    }
    copies = next;
  }
  batches.finish();
}

template <Store store>
void copy_rows(const Copying& copying) {
  // Where nothing starts or ends within a line, rows have nothing else.
  const auto within_line = [](auto at) {
    return static_cast<uint64_t>(at) % static_cast<uint64_t>(whole_line_bytes()) != 0;
  };
  const bool has_ends = within_line(reinterpret_cast<uintptr_t>(copying.out)) ||
                        within_line(copying.out_step) || within_line(copying.row_bytes);
  copying.row_bytes <= kNarrowCopyBytes ? copy_narrow<store>(copying, has_ends)
                                        : copy_in_groups<store>(copying, has_ends);
  if (store == Store::kStreaming) hwy::FlushStream();
}

// The tokens and the bytes of their rows that a chunk names, and what Tokens takes of `more`.
inline void permute_chunk(const PermuteWithEpProblem& p, const PermuteWithEpPointers& at,
                          const Chunk& chunk, Chunks& more, bool streaming) {
  const int64_t element = dtype_bytes(p.tokens_dtype);
  const bool with_probs = p.has_probs && chunk.first_byte == 0;
  const bool every_token = p.window_rows() == p.sort.num_tokens * p.sort.top_k;
  const bool in_groups = p.row_bytes() > kNarrowCopyBytes;
  const int64_t num_sources = std::min(p.window_rows(), p.sort.num_tokens);
  const Copying copying{
      .slots = {p.sort.sorted_dtype, at.sorted_indices, 1, p.window, p.sort.top_k},
      .tokens = {chunk, more},
      .input = static_cast<const uint8_t*>(at.tokens) + chunk.first_byte,
      .input_step = p.row_stride * element,
      .row_bytes = chunk.last_byte - chunk.first_byte,
      .every_token = every_token,
      .far_rows =
          in_groups && !every_token ? far_rows(num_sources, p.row_bytes(), kFarReadBytes) : 0,
      .out = static_cast<uint8_t*>(at.permuted_tokens) + chunk.first_byte,
      .out_step = p.row_bytes(),
      .probs_dtype = p.probs_dtype,
      .probs = with_probs ? at.probs : nullptr,
      .probs_token_stride = p.probs_token_stride,
      .probs_slot_stride = p.probs_slot_stride,
      .probs_out = at.permuted_probs,
  };
  streaming ? copy_rows<Store::kStreaming>(copying) : copy_rows<Store::kCached>(copying);
}

inline void permute_chunks(const PermuteWithEpProblem& p, const PermuteWithEpPointers& at,
                           Chunks& chunks, bool streaming) {
  const FpMode mode;
  note_target(hwy::TargetName(HWY_TARGET));
  for (Chunk chunk; chunks.next(chunk);) permute_chunk(p, at, chunk, chunks, streaming);
}

inline void run_permute(const PermuteWithEpProblem& p, const PermuteWithEpPointers& at,
                        void* workspace) {
  run_in_chunks(p, at, workspace, permute_chunks);
}

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
