// The kernel text of PermuteWithEpGrad, compiled once per instruction set.
//
// Contract: takes any problem with inner stride 1 and at most kMaxRows experts per token; writes
// every element of its part of the outputs and nothing else; reads rows of the window only, and of
// those only what a slot names (prefetches aside, which never fault).
//
// The work is bound by memory, and memory is fast only when many rows are on their way at once. So
// tokens are taken in groups with about kStreams rows; a group is read a block at a time, each row
// in turn; and while one block is summed, the next one is asked for.
#include <algorithm>

#include "core/fp_mode.h"
#include "cpu/permute_with_ep_grad.h"
#include "cpu/rows-inl.h"
#include "cpu/tuning.h"

#if defined(MOE_CPU_PERMUTE_WITH_EP_GRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOE_CPU_PERMUTE_WITH_EP_GRAD_INL_H_
#undef MOE_CPU_PERMUTE_WITH_EP_GRAD_INL_H_
#else
#define MOE_CPU_PERMUTE_WITH_EP_GRAD_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace moe::cpu {
namespace HWY_NAMESPACE {

// The rows of a few tokens, in slot order, without the slots outside the window.
struct Batch {
  const uint8_t* rows[kMaxRows + 1];
  int32_t begin[kMaxRows + 1];  // token i of the batch has the rows [begin[i], begin[i + 1])
  int64_t num_tokens;

  int64_t num_rows(int64_t token) const { return begin[token + 1] - begin[token]; }
};

// Every slot's address is written, and the next one overwrites it if the slot was outside.
template <class Index>
HWY_INLINE void pack(const PermuteWithEpGradProblem& p, const PermuteWithEpGradPointers& at,
                     int64_t first_token, int64_t first_byte, Batch& batch) {
  auto slots = slots_of<Index>(p, at, first_token * p.top_k);
  const auto* input = static_cast<const uint8_t*>(at.permuted_tokens_grad) + first_byte;
  const int64_t row_step = p.row_stride * dtype_bytes(p.tokens_dtype);
  int32_t n = 0;
  for (int64_t token = 0; token < batch.num_tokens; ++token) {
    batch.begin[token] = n;
    for (int64_t k = 0; k < p.top_k; ++k) {
      const auto [row, inside] = slots.next();
      batch.rows[n] = input + row * row_step;
      n += inside;
    }
  }
  batch.begin[batch.num_tokens] = n;
}

// Tokens that are read together: [begin, end) of the batch.
struct Group {
  int64_t begin, end;
};

HWY_INLINE Group next_group(const Batch& batch, int64_t begin, int64_t row_bytes) {
  const int64_t wanted = std::max(kStreams, kAheadBytes / (row_bytes + 1));
  int64_t end = begin, rows = 0;
  while (end < batch.num_tokens && end - begin < kMaxGroup) {
    rows += batch.num_rows(end);
    if (rows > wanted && end > begin) break;
    ++end;
  }
  return {begin, end};
}

// One token's sums over the part of the row that a block covers.
template <class T, Store store>
class TokenSum {
 public:
  TokenSum(const Batch& batch, int64_t token, int64_t top_k, int64_t row_bytes, uint8_t* out)
      : in_{batch.rows + batch.begin[token], batch.num_rows(token), batch.num_rows(token) == top_k},
        row_bytes_(row_bytes),
        out_(out) {
    // Streaming stores need aligned addresses, and full lines to be of use.
    if (store == Store::kStreaming)
      head_ = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(out) & 63);
  }

  HWY_INLINE void head() const {
    for (int64_t h = 0; h < head_; h += step()) sum_vector<T, Store::kCached>(in_, h, out_);
  }
  // Pieces of four vectors, [begin, end) counted from the head.
  HWY_INLINE void pieces(int64_t begin, int64_t end, const Ahead& ahead, int64_t ahead_row) const {
    end = std::min(end, (row_bytes_ - head_) / (4 * step()));
    const auto each = [&](auto four_vectors) {
      for (int64_t h = head_ + begin * 4 * step(); begin < end; ++begin, h += 4 * step()) {
        ahead.fetch(ahead_row, ahead_row + in_.count, h);
        four_vectors(in_, h, out_);
      }
    };
    if (in_.count > 1) {
      each([](const auto&... args) { sum_four_vectors<T, store>(args...); });
    } else {
      each([](const auto&... args) { copy_four_vectors<T, store>(args...); });
    }
  }
  // What the pieces leave: single vectors, the last of which may overlap the one before.
  HWY_INLINE void tail() const {
    int64_t h = row_bytes_ - (row_bytes_ - head_) % (4 * step());
    for (; h + step() <= row_bytes_; h += step()) sum_vector<T, store>(in_, h, out_);
    if (h < row_bytes_) sum_vector<T, Store::kCached>(in_, row_bytes_ - step(), out_);
  }

 private:
  static int64_t step() { return static_cast<int64_t>(hn::Lanes(Bytes())); }

  Rows in_;
  int64_t row_bytes_;
  uint8_t* out_;
  int64_t head_ = 0;
};

template <class T, Store store>
HWY_INLINE void sum_group(const Batch& batch, const Group& group, const Group& next, int64_t top_k,
                          int64_t row_bytes, uint8_t* out, int64_t out_step) {
  const int64_t piece_bytes = 4 * static_cast<int64_t>(hn::Lanes(Bytes()));
  const int32_t first_row = batch.begin[group.begin], end_row = batch.begin[group.end];
  const int64_t num_pieces = row_bytes / piece_bytes;
  const int64_t num_blocks =
      std::max<int64_t>(1, (num_pieces * piece_bytes + kBlockBytes / 2) / kBlockBytes);
  const int64_t block = (num_pieces + num_blocks - 1) / num_blocks;

  for (int64_t b = 0; b < num_blocks; ++b) {
    const bool last = b == num_blocks - 1;
    Ahead ahead{batch.rows + first_row, end_row - first_row, block * piece_bytes};
    if (last) {
      ahead = {batch.rows + end_row, batch.begin[next.end] - end_row, -b * block * piece_bytes};
    }
    for (int64_t token = group.begin; token < group.end; ++token) {
      const TokenSum<T, store> sum(batch, token, top_k, row_bytes, out + token * out_step);
      if (b == 0) sum.head();
      sum.pieces(b * block, (b + 1) * block, ahead, batch.begin[token] - first_row);
      if (last) sum.tail();
    }
    if (last) {
      for (int64_t piece = b * block; piece < (b + 1) * block; ++piece) {
        ahead.fetch(end_row - first_row, ahead.count, piece * piece_bytes);
      }
    }
  }
}

template <class T, Store store>
void sum_batch(const Batch& batch, int64_t top_k, int64_t row_bytes, uint8_t* out,
               int64_t out_step) {
  // A row shorter than what head and tail step over goes through buffers.
  if (row_bytes < 64 + static_cast<int64_t>(hn::Lanes(Bytes()))) {
    for (int64_t token = 0; token < batch.num_tokens; ++token) {
      const Rows in{batch.rows + batch.begin[token], batch.num_rows(token),
                    batch.num_rows(token) == top_k};
      sum_short_row<T>(in, row_bytes, out + token * out_step);
    }
    return;
  }
  Group group = next_group(batch, 0, row_bytes);
  while (group.begin < batch.num_tokens) {
    const Group next = next_group(batch, group.end, row_bytes);
    sum_group<T, store>(batch, group, next, top_k, row_bytes, out, out_step);
    group = next;
  }
}

// The tokens and the bytes of their rows that a chunk names.
inline void run_chunk(const PermuteWithEpGradProblem& p, const PermuteWithEpGradPointers& at,
                      const Chunk& chunk, bool streaming) {
  const FpMode mode;
  note_target(hwy::TargetName(HWY_TARGET));
  const int64_t element = dtype_bytes(p.tokens_dtype), out_step = p.hidden_size * element;
  auto* out = static_cast<uint8_t*>(at.tokens_grad) + chunk.first_byte;
  const int64_t batch_tokens = kMaxRows / p.top_k;
  Batch batch;
  for (int64_t token = chunk.first_token; token < chunk.last_token; token += batch_tokens) {
    batch.num_tokens = std::min(batch_tokens, chunk.last_token - token);
    visit_index(p.index_dtype,
                [&](auto index) { pack<decltype(index)>(p, at, token, chunk.first_byte, batch); });
    visit_float(p.tokens_dtype, [&](auto t) {
      using T = decltype(t);
      const auto sum = streaming ? sum_batch<T, Store::kStreaming> : sum_batch<T, Store::kCached>;
      sum(batch, p.top_k, chunk.last_byte - chunk.first_byte, out + token * out_step, out_step);
    });
  }
  if (streaming) hwy::FlushStream();
}

inline void run(const PermuteWithEpGradProblem& p, const PermuteWithEpGradPointers& at,
                void* workspace) {
  run_in_chunks(p, at, workspace, run_chunk);
}

inline const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
