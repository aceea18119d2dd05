// The rows that a token range reads, in groups that are read together; compiled once per
// instruction set.
#include <algorithm>
#include <bit>
#include <cstring>

#include "cpu/batch-inl.h"
#include "cpu/cut.h"
#include "cpu/gather.h"
#include "cpu/tuning.h"

#if defined(MOE_CPU_GROUPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOE_CPU_GROUPS_INL_H_
#undef MOE_CPU_GROUPS_INL_H_
#else
#define MOE_CPU_GROUPS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace moe::cpu {
namespace HWY_NAMESPACE {

// How far before a row's turn its lines are asked for: the less, the more rows are read together.
inline int64_t ahead_bytes(int64_t num_rows) {
  return std::max(kRowAheadBytes,
                  kGroupAheadBytes >> std::bit_width(static_cast<uint64_t>(num_rows)));
}

// A batch, and where its rows lie.
template <class Weight>
struct RowBatch : Batch<Weight> {
  const uint8_t* rows[kMaxRows + kMaxFarRows];  // and `ahead` more, the first of the next batch
  int64_t ahead;

  // As many rows as a token has, `distance` rows further on, or behind its own if it has more.
  HWY_INLINE const uint8_t* const* rows_after(int64_t token, int64_t distance) const {
    const int64_t first = this->begin[token], count = this->begin[token + 1] - first;
    return rows + std::min(first + std::max(distance, count), this->num_rows() + ahead - count);
  }
};

// The batches of a gather, one after another, in three places by turns: while the last group of one
// is read, the first group of the next one is known, and behind its rows those of the one after it.
template <class Weight>
class Batches {
 public:
  // At the end of a batch the next `rows_ahead` rows are known.
  Batches(const Gather& g, const Tokens& tokens, int64_t rows_ahead)
      : gather_(g),
        tokens_(tokens),
        batch_tokens_(tokens_of_batch(g)),
        rows_ahead_(rows_ahead),
        following_(find()) {
    if (following_) fetch_first_rows(*following_);
  }

  // None at the end.
  const RowBatch<Weight>* next() {
    Batch* const batch = following_;
    if (!batch) return nullptr;
    following_ = find();
    batch->ahead = rows_ahead_;
    append_ahead(batch->rows, batch->num_rows(), following_ ? following_->rows : nullptr,
                 following_ ? following_->num_rows() : 0, rows_ahead_, gather_.input);
    return batch;
  }
  void finish() const {
    for (int64_t i = 0; i < std::min(num_found_, kPlaces); ++i) copy_probs(batches_[i]);
  }

 private:
  using Batch = RowBatch<Weight>;
  static constexpr int64_t kPlaces = 3;

  static int64_t tokens_of_batch(const Gather& g) {
    const double token_bytes = g.rows_per_token * static_cast<double>(g.row_bytes);
    const double tokens = kBatchBytes / (token_bytes + 1);
    const double most = static_cast<double>(kBatchSlots) / static_cast<double>(g.slots.top_k);
    return static_cast<int64_t>(std::max(1.0, std::clamp(tokens, most / 8, most)));
  }
  HWY_NOINLINE Batch* find() {
    if (!tokens_.any()) return nullptr;
    Batch& batch = batches_[num_found_ % kPlaces];
    if (num_found_++ >= kPlaces) copy_probs(batch);
    const Tokens::Range taken = tokens_.take(batch_tokens_);
    pack(gather_.slots, taken.first, taken.count, batch);
    find_rows(batch);
    return &batch;
  }
  // On their way while the second batch is packed.
  void fetch_first_rows(const Batch& batch) const {
    const int64_t count = std::min(batch.num_rows(), kMaxGroup);
    for (int64_t h = 0; h < std::min(gather_.row_bytes, kRowAheadBytes); h += line_bytes()) {
      for (int64_t i = 0; i < count; ++i) fetch_line(batch.rows[i] + h);
    }
  }
  void find_rows(Batch& batch) const {
    const int64_t n = batch.num_rows();
    for (int64_t i = 0; i < n; ++i)
      batch.rows[i] = gather_.input + batch.row[i] * gather_.input_step;
    if (!gather_.probs_out) return;
    const int64_t step = gather_.probs_step;
    for (int64_t i = 0; i < n; ++i) {
      hwy::Prefetch(static_cast<const char*>(gather_.probs) + batch.row[i] * step);
    }
  }
  // Long after they were asked for.
  void copy_probs(const Batch& batch) const {
    if (!gather_.probs_out) return;
    visit_bytes(gather_.probs_dtype, [&](auto bits) {
      using Bits = decltype(bits);
      const int64_t num_slots = batch.num_tokens * gather_.slots.top_k, n = batch.num_rows();
      void* out = static_cast<Bits*>(gather_.probs_out) + batch.first_token * gather_.slots.top_k;
      const auto copy = [&](auto slot_of) {
        const int64_t step = gather_.probs_step;
        for (int64_t i = 0; i < n; ++i) {
          const char* const prob = static_cast<const char*>(gather_.probs) + batch.row[i] * step;
          store(out, slot_of(i), load<Bits>(prob, 0));
        }
      };
      if (n == num_slots) return copy([](int64_t i) { return i; });
      std::memset(out, 0, static_cast<size_t>(num_slots) * sizeof(Bits));
      copy([&](int64_t i) { return int64_t{batch.slot[i]}; });
    });
  }

  const Gather& gather_;
  Tokens tokens_;
  int64_t batch_tokens_;
  int64_t rows_ahead_;
  int64_t num_found_ = 0;
  Batch batches_[kPlaces];
  Batch* following_;  // behind the places: the first one is found when this is made
};

// Tokens that are read together: [begin, end) of a batch.
template <class Weight>
struct Group {
  const RowBatch<Weight>* batch;
  int64_t begin, end;

  int64_t first_row() const { return batch->begin[begin]; }
  int64_t num_rows() const { return batch->begin[end] - first_row(); }
  const uint8_t* const* rows() const { return batch->rows + first_row(); }
};

// The groups of a gather, one after another. A group stays valid until the next but one is asked
// for.
template <class Weight>
class Groups {
 public:
  Groups(const Gather& g, const Tokens& tokens)
      : batches_(g, tokens, g.far_rows),
        batch_(batches_.next()),
        wanted_rows_(std::clamp(kGroupBytes / (g.row_bytes + 1), kGroupRows, kMaxGroup)) {}

  // An empty one at the end.
  HWY_INLINE Group<Weight> next() {
    if (position_ == batch_->num_tokens) {
      if (const RowBatch<Weight>* const batch = batches_.next()) batch_ = batch, position_ = 0;
    }
    const int64_t begin = position_;
    const int64_t most = std::min(batch_->num_tokens, begin + kMaxGroup);
    const int32_t* rows_until = batch_->begin;
    // A further token is taken if that brings the rows nearer to what is wanted.
    int64_t rows = 0, last = 0;
    while (position_ < most && rows + last / 2 < wanted_rows_) {
      last = rows_until[position_ + 1] - rows_until[position_];
      rows += last;
      ++position_;
    }
    return {batch_, begin, position_};
  }
  void finish() const { batches_.finish(); }

 private:
  Batches<Weight> batches_;
  const RowBatch<Weight>* batch_;
  int64_t wanted_rows_;
  int64_t position_ = 0;
};

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
