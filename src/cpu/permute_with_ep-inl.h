// The kernel text of PermuteWithEp, compiled once per instruction set.
//
// Contract: takes any problem with inner stride 1 and at most kMaxCopies experts per token; writes
// the bytes of its chunk in the window's rows that its tokens lead to, and nothing else; reads the
// rows of tokens that have a row in the window (prefetches aside, which never fault).
//
// A token's row is read from memory once: a piece of it goes to all its rows before the next piece.
// Tokens with few rows are copied in groups, a piece of each in turn, since memory is fast only
// when several rows are on their way at once; and while one piece is copied, the next is asked for.
#include <algorithm>

#include "core/dtypes.h"
#include "cpu/copy-inl.h"
#include "cpu/permute_with_ep.h"
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

// Some tokens that have rows in the window, which rows those are, and where their probs stand.
struct Copies {
  const uint8_t* sources[kMaxCopies + 1];
  int32_t begin[kMaxCopies + 1];  // token i has the rows [begin[i], begin[i + 1])
  int64_t rows[kMaxCopies + 1];
  int64_t probs[kMaxCopies + 1];  // elements of the input
  int64_t num_tokens;

  int32_t num_rows() const { return begin[num_tokens]; }
};

// Every token and every row is written down, and the next one overwrites what was not one.
template <class Index>
HWY_INLINE void collect(const PermuteWithEpProblem& p, const PermuteWithEpPointers& at,
                        int64_t first_token, int64_t last_token, int64_t first_byte,
                        Copies& copies) {
  auto slots = slots_of<Index>(p, at, first_token * p.sort.top_k);
  const int64_t step = p.row_stride * dtype_bytes(p.tokens_dtype);
  const auto* source = static_cast<const uint8_t*>(at.tokens) + first_token * step + first_byte;
  const int64_t top_k = p.sort.top_k, prob_step = p.probs_slot_stride;
  int64_t tokens = 0;
  int32_t rows = 0;
  for (int64_t token = first_token; token < last_token; ++token, source += step) {
    copies.sources[tokens] = source;
    copies.begin[tokens] = rows;
    int64_t prob = token * p.probs_token_stride;
    for (int64_t k = 0; k < top_k; ++k, prob += prob_step) {
      const auto [row, inside] = slots.next();
      copies.rows[rows] = row;
      copies.probs[rows] = prob;
      rows += inside;
    }
    tokens += rows != copies.begin[tokens];
  }
  copies.begin[tokens] = rows;
  copies.num_tokens = tokens;
}

// Tokens that are copied together: the end of the group that begins with `begin`.
HWY_INLINE int64_t group_end(const Copies& copies, int64_t begin, int64_t row_bytes) {
  int64_t end = begin;
  while (end < copies.num_tokens && (copies.begin[end] - copies.begin[begin] < kCopyStreams ||
                                     (end - begin) * row_bytes < kAheadBytes)) {
    ++end;
  }
  return end;
}

template <bool kStreaming>
HWY_INLINE void copy_piece(const Copies& copies, int64_t token, int64_t first_byte, int64_t bytes,
                           const uint8_t* ahead, uint8_t* out, int64_t out_step) {
  const uint8_t* source = copies.sources[token] + first_byte;
  out += first_byte;
  int32_t row = copies.begin[token];
  Copier(source, ahead, bytes).copy_to<kStreaming>(out + copies.rows[row] * out_step);
  const Copier again(source, nullptr, bytes);
  while (++row < copies.begin[token + 1]) {
    again.copy_to<kStreaming>(out + copies.rows[row] * out_step);
  }
}

template <bool kStreaming>
void copy_rows(const Copies& copies, int64_t row_bytes, uint8_t* out, int64_t out_step) {
  for (int64_t begin = 0; begin < copies.num_tokens;) {
    const int64_t end = group_end(copies, begin, row_bytes);
    for (int64_t byte = 0; byte < row_bytes; byte += kPieceBytes) {
      const int64_t bytes = std::min(kPieceBytes, row_bytes - byte);
      const bool last = byte + bytes == row_bytes;
      for (int64_t token = begin; token < end; ++token) {
        const int64_t next = token + (end - begin);
        const uint8_t* ahead = copies.sources[token] + byte + bytes;
        if (last) ahead = next < copies.num_tokens ? copies.sources[next] : nullptr;
        copy_piece<kStreaming>(copies, token, byte, bytes, ahead, out, out_step);
      }
    }
    begin = end;
  }
}

HWY_INLINE void copy_probs(const PermuteWithEpProblem& p, const PermuteWithEpPointers& at,
                           const Copies& copies) {
  visit_bytes(p.probs_dtype, [&](auto bits) {
    for (int32_t i = 0; i < copies.num_rows(); ++i) {
      store(at.permuted_probs, copies.rows[i], load<decltype(bits)>(at.probs, copies.probs[i]));
    }
  });
}

inline void permute_chunk(const PermuteWithEpProblem& p, const PermuteWithEpPointers& at,
                          const Chunk& chunk, bool streaming) {
  note_target(hwy::TargetName(HWY_TARGET));
  const int64_t tokens_at_once = kMaxCopies / p.sort.top_k;
  auto* const out = static_cast<uint8_t*>(at.permuted_tokens) + chunk.first_byte;
  Copies copies;
  for (int64_t token = chunk.first_token; token < chunk.last_token; token += tokens_at_once) {
    const int64_t end = std::min(token + tokens_at_once, chunk.last_token);
    visit_index(p.sort.sorted_dtype, [&](auto index) {
      collect<decltype(index)>(p, at, token, end, chunk.first_byte, copies);
    });
    const auto copy = streaming ? copy_rows<true> : copy_rows<false>;
    copy(copies, chunk.last_byte - chunk.first_byte, out, p.row_bytes());
    if (p.has_probs && chunk.first_byte == 0) copy_probs(p, at, copies);
  }
  if (streaming) hwy::FlushStream();
}

inline void run_permute(const PermuteWithEpProblem& p, const PermuteWithEpPointers& at,
                        void* workspace) {
  run_in_chunks(p, at, workspace, permute_chunk);
}

inline const char* permute_target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
