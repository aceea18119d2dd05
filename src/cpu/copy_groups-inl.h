// The rows that a token range copies, in groups that are copied together; compiled once per
// instruction set.
#include <algorithm>

#include "core/dtypes.h"
#include "cpu/batch-inl.h"
#include "cpu/cut.h"
#include "cpu/tuning.h"

#if defined(MOE_CPU_COPY_GROUPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOE_CPU_COPY_GROUPS_INL_H_
#undef MOE_CPU_COPY_GROUPS_INL_H_
#else
#define MOE_CPU_COPY_GROUPS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace moe::cpu {
namespace HWY_NAMESPACE {

// The copies of the tokens; of each row, `row_bytes` from `input` on.
struct Copying {
  SlotSource slots;
  Tokens tokens;
  const uint8_t* input;  // token 0
  int64_t input_step;    // bytes from row to row
  int64_t row_bytes;
  bool every_token;  // has all its rows in the window, so that rows are read in order
  int64_t far_rows;  // how many rows before its turn one is asked for first; 0: never
  uint8_t* out;      // row 0
  int64_t out_step;
  // One number per slot that goes to its row; none where `probs` is null.
  DType probs_dtype;
  const void* probs;
  int64_t probs_token_stride, probs_slot_stride;
  void* probs_out;
};

// Tokens that have rows in the window, and which rows those are.
struct Copies {
  Copies() { clear(); }
  void clear() { num_tokens = num_rows = begin[0] = 0; }
  void append_sources(const Copies& next, const uint8_t* otherwise) {
    append_ahead(sources, num_tokens, next.sources, next.num_tokens, kMaxGroup, otherwise);
  }

  PackedSlots<NoWeight> slots;
  int64_t num_tokens, num_rows;
  int32_t begin[kMaxRows + 1];                   // token i has the rows [begin[i], begin[i + 1])
  const uint8_t* sources[kMaxRows + kMaxGroup];  // and the first of the next ones
};

// What is found at a time, in two places by turns: the next ones while those before are still in
// use.
class CopyBatches {
 public:
  explicit CopyBatches(const Copying& copying)
      : copying_(copying),
        tokens_(copying.tokens),
        tokens_at_once_(std::max<int64_t>(
            1, (copying.far_rows ? kMaxRows : kBatchSlots) / copying.slots.top_k)) {}

  // The next ones that are not empty; an empty one at the end.
  HWY_NOINLINE Copies* next() {
    current_ = 1 - current_;
    Copies& copies = copies_[current_];
    copy_probs(copies);
    copies.clear();
    while (copies.num_tokens == 0 && tokens_.any()) find(copies);
    return &copies;
  }
  bool any() { return tokens_.any(); }
  void finish() const {
    for (const Copies& copies : copies_) copy_probs(copies);
  }

 private:
  void find(Copies& copies) {
    const Tokens::Range taken = tokens_.take(tokens_at_once_);
    copies.slots.first_token = taken.first;
    const SlotSource& source = copying_.slots;
    visit_index(source.index_dtype, [&](auto index) {
      copies.num_rows =
          pack_slots<decltype(index)>(source, taken.count * source.top_k, copies.slots);
    });
    find_tokens(copies, taken.count);
    ask_for_probs(copies, taken.count);
  }
  void find_tokens(Copies& copies, int64_t count) const {
    copies.num_rows == count* copying_.slots.top_k ? take_all(copies, count) : take_some(copies);
  }
  void take_all(Copies& copies, int64_t count) const {
    copies.num_tokens = count;
    for (int64_t token = 0; token < count; ++token) {
      copies.sources[token] = source(copies, token);
      copies.begin[token + 1] = static_cast<int32_t>((token + 1) * copying_.slots.top_k);
    }
  }
  void take_some(Copies& copies) const {
    // Every slot's token is written down, and overwritten when the slot before had the same one.
    int64_t tokens = -1, last = -1;
    for (int64_t i = 0; i < copies.num_rows; ++i) {
      const int64_t token = token_of(copies.slots.slot[i]);
      tokens += token != last;
      last = token;
      copies.sources[tokens] = source(copies, token);
      copies.begin[tokens + 1] = static_cast<int32_t>(i + 1);
    }
    copies.num_tokens = tokens + 1;
  }
  const uint8_t* source(const Copies& copies, int64_t token) const {
    return copying_.input + (copies.slots.first_token + token) * copying_.input_step;
  }
  // slot / top_k: both are at most kMaxRows.
  int64_t token_of(int32_t slot) const {
    return static_cast<int64_t>(static_cast<uint32_t>(slot) * inverse_ >> 32);
  }
  bool probs_are_dense() const {
    return copying_.probs_token_stride == copying_.probs_slot_stride * copying_.slots.top_k;
  }
  const char* probs_of(const Copies& copies) const {
    return static_cast<const char*>(copying_.probs) + copies.slots.first_token *
                                                          copying_.probs_token_stride *
                                                          dtype_bytes(copying_.probs_dtype);
  }
  void ask_for_probs(const Copies& copies, int64_t count) const {
    if (!copying_.probs || !probs_are_dense() || copying_.probs_slot_stride > 1) return;
    const char* const probs = probs_of(copies);
    const int64_t bytes = count * copying_.slots.top_k * dtype_bytes(copying_.probs_dtype);
    for (int64_t at = 0; at < bytes; at += 64) hwy::Prefetch(probs + at);
  }
  // Long after they were asked for.
  void copy_probs(const Copies& copies) const {
    if (!copying_.probs || copies.num_rows == 0) return;
    visit_bytes(copying_.probs_dtype, [&](auto bits) {
      using Bits = decltype(bits);
      const char* const probs = probs_of(copies);
      void* const out = copying_.probs_out;
      const int64_t n = copies.num_rows, token_step = copying_.probs_token_stride,
                    slot_step = copying_.probs_slot_stride, top_k = copying_.slots.top_k;
      const auto copy = [&](auto prob_of) {
        for (int64_t i = 0; i < n; ++i) {
          store(out, copies.slots.row[i], load<Bits>(probs, prob_of(copies.slots.slot[i])));
        }
      };
      if (probs_are_dense()) return copy([&](int64_t slot) { return slot * slot_step; });
      copy([&](int64_t slot) {
        const int64_t token = token_of(static_cast<int32_t>(slot));
        return token * token_step + (slot - token * top_k) * slot_step;
      });
    });
  }

  const Copying& copying_;
  Tokens tokens_;
  int64_t tokens_at_once_;
  uint64_t inverse_ = (uint64_t{1} << 32) / static_cast<uint64_t>(copying_.slots.top_k) + 1;
  Copies copies_[2];
  int current_ = 0;
};

// Tokens that are copied together: [begin, end) of what was found.
struct CopyGroup {
  const Copies* copies;
  int64_t begin, end;

  int64_t num_tokens() const { return end - begin; }
  const uint8_t* source(int64_t i) const { return copies->sources[begin + i]; }
  // The row that is `distance` rows further on, if it is among those that were found.
  const uint8_t* far_source(int64_t i, int64_t distance) const {
    const int64_t at = begin + i + distance;
    return distance && at < copies->num_tokens ? copies->sources[at] : nullptr;
  }
};

// The groups of a chunk, one after another. A group stays valid until the next but one is asked
// for.
class CopyGroups {
 public:
  explicit CopyGroups(const Copying& copying)
      : batches_(copying),
        copies_(batches_.next()),
        wanted_rows_(copying.every_token ? 1
                                         : std::clamp(kCopyGroupBytes / (copying.row_bytes + 1) + 1,
                                                      kCopyRows, kMaxGroup)) {}

  // An empty one at the end.
  HWY_INLINE CopyGroup next() {
    if (position_ == copies_->num_tokens && batches_.any()) {
      copies_ = batches_.next();
      position_ = 0;
    }
    const int64_t begin = position_;
    const int64_t most = std::min(begin + kMaxGroup, copies_->num_tokens);
    const int32_t* rows = copies_->begin;
    while (position_ < most && rows[position_] - rows[begin] < wanted_rows_) ++position_;
    return {copies_, begin, position_};
  }
  void finish() const { batches_.finish(); }

 private:
  CopyBatches batches_;
  const Copies* copies_;
  int64_t wanted_rows_;
  int64_t position_ = 0;
};

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
