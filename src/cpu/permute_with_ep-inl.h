// The kernel text of PermuteWithEp, compiled once per instruction set.
//
// Contract: takes any problem with inner stride 1 and at most kMaxRows experts per token; writes
// the bytes of its chunk in the window's rows that its tokens lead to, and nothing else; reads the
// rows of tokens that have a row in the window (prefetches aside, which never fault).
//
// A token's row is read from memory once: a piece of it goes to all its rows before the next piece,
// and the row that comes next is on its way meanwhile.
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

// Some tokens that have rows in the window, and where those are.
struct Copies {
  const uint8_t* sources[kMaxRows + 1];
  int32_t begin[kMaxRows + 1];  // token i has the rows [begin[i], begin[i + 1])
  uint8_t* rows[kMaxRows + 1];
  int64_t num_tokens;
};

// Every token and every row is written down, and the next one overwrites what was not one.
template <class Index>
HWY_INLINE void collect(const PermuteWithEpProblem& p, const PermuteWithEpPointers& at,
                        int64_t first_token, int64_t last_token, int64_t first_byte,
                        Copies& copies) {
  auto slots = slots_of<Index>(p, at, first_token * p.sort.top_k);
  const int64_t step = p.row_stride * dtype_bytes(p.tokens_dtype), row_bytes = p.row_bytes();
  const auto* source = static_cast<const uint8_t*>(at.tokens) + first_token * step + first_byte;
  auto* const output = static_cast<uint8_t*>(at.permuted_tokens) + first_byte;
  int64_t tokens = 0;
  int32_t rows = 0;
  for (int64_t token = first_token; token < last_token; ++token, source += step) {
    copies.sources[tokens] = source;
    copies.begin[tokens] = rows;
    for (int64_t k = 0; k < p.sort.top_k; ++k) {
      const auto [row, inside] = slots.next();
      copies.rows[rows] = output + row * row_bytes;
      rows += inside;
    }
    tokens += rows != copies.begin[tokens];
  }
  copies.begin[tokens] = rows;
  copies.num_tokens = tokens;
}

template <bool kStreaming>
void copy_rows(const Copies& copies, int64_t row_bytes) {
  const int64_t distance = 1 + kAheadBytes / (row_bytes + 1);
  for (int64_t token = 0; token < copies.num_tokens; ++token) {
    const uint8_t* source = copies.sources[token];
    const uint8_t* ahead =
        token + distance < copies.num_tokens ? copies.sources[token + distance] : nullptr;
    for (int64_t byte = 0; byte < row_bytes; byte += kPieceBytes) {
      const int64_t bytes = std::min(kPieceBytes, row_bytes - byte);
      int32_t row = copies.begin[token];
      Copier(source + byte, ahead ? ahead + byte : nullptr, bytes)
          .copy_to<kStreaming>(copies.rows[row] + byte);
      const Copier again(source + byte, nullptr, bytes);
      while (++row < copies.begin[token + 1]) again.copy_to<kStreaming>(copies.rows[row] + byte);
    }
  }
}

inline void permute_chunk(const PermuteWithEpProblem& p, const PermuteWithEpPointers& at,
                          const Chunk& chunk, bool streaming) {
  note_target(hwy::TargetName(HWY_TARGET));
  const int64_t tokens_at_once = kMaxRows / p.sort.top_k;
  Copies copies;
  for (int64_t token = chunk.first_token; token < chunk.last_token; token += tokens_at_once) {
    const int64_t end = std::min(token + tokens_at_once, chunk.last_token);
    visit_index(p.sort.sorted_dtype, [&](auto index) {
      collect<decltype(index)>(p, at, token, end, chunk.first_byte, copies);
    });
    const auto copy = streaming ? copy_rows<true> : copy_rows<false>;
    copy(copies, chunk.last_byte - chunk.first_byte);
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
