// The sum of one token's rows, a line at a time; compiled once per instruction set.
#include <algorithm>

#include "cpu/groups-inl.h"
#include "cpu/rows-inl.h"

#if defined(MOE_CPU_TOKEN_SUM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOE_CPU_TOKEN_SUM_INL_H_
#undef MOE_CPU_TOKEN_SUM_INL_H_
#else
#define MOE_CPU_TOKEN_SUM_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace moe::cpu {
namespace HWY_NAMESPACE {

// One token's sums. `far`: rows are asked for twice.
template <class T, class Weight, Store store, bool far>
class TokenSum {
 public:
  TokenSum() = default;
  HWY_INLINE TokenSum(const Gather& g, const RowBatch<Weight>& batch, int64_t token)
      : TokenSum(g, batch.first_token + token, batch.rows + batch.begin[token],
                 batch.weights + batch.begin[token], batch.begin[token + 1] - batch.begin[token]) {}
  HWY_INLINE TokenSum(const Gather& g, int64_t token, const uint8_t* const* rows,
                      const Weight* weights, int64_t num_rows)
      : in_{rows, weights, num_rows, num_rows == g.slots.top_k},
        out_(g.out + token * g.out_step),
        far_rows_(g.far_rows) {
    // Streaming stores need aligned addresses, and full lines to be of use.
    const bool streaming = store == Store::kStreaming;
    head_ = streaming ? static_cast<int64_t>(-reinterpret_cast<uintptr_t>(out_) & 63) : 0;
    num_lines_ = (g.row_bytes - head_) / line_bytes();
  }

  HWY_INLINE void head() const {
    for (int64_t h = 0; h < head_; h += vector_bytes()) {
      sum_vector<T, Store::kCached>(in_, h, out_);
    }
  }
  // With the lines that follow, those of `ahead` are asked for.
  HWY_INLINE void ask(const Ahead& ahead) { ahead_ = ahead; }
  // Lines [begin, end) counted from the head. Counts of rows that are frequent have a text of their
  // own.
  HWY_INLINE void lines(int64_t begin, int64_t end) const {
    end = std::min(end, num_lines_);
    switch (in_.count) {
      case 0:
        return zero_lines(begin, end);
      case 1:
        return one_row_lines(begin, end);
      case 2:
        return sum_lines<2>(begin, end);
      case 3:
        return sum_lines<3>(begin, end);
      case 4:
        return sum_lines<4>(begin, end);
      case 8:
        return sum_many_lines<8>(begin, end);
      default:
        return sum_many_lines<0>(begin, end);
    }
  }
  // A row shorter than what head and tail step over goes through buffers.
  HWY_INLINE void short_row(int64_t row_bytes) const { sum_short_row<T>(in_, row_bytes, out_); }
  // What head and lines leave: single vectors, the last of which may overlap the one before.
  HWY_INLINE void tail(int64_t row_bytes) const {
    int64_t h = head_ + num_lines_ * line_bytes();
    for (; h + vector_bytes() <= row_bytes; h += vector_bytes()) {
      sum_vector<T, store>(in_, h, out_);
    }
    if (h < row_bytes) sum_vector<T, Store::kCached>(in_, row_bytes - vector_bytes(), out_);
  }

  int64_t num_rows() const { return in_.count; }

 private:
  HWY_INLINE void zero_lines(int64_t begin, int64_t end) const {
    uint8_t* out = out_ + head_ + begin * line_bytes();
    for (int64_t left = end - begin; left > 0; --left, out += line_bytes())
      zero_line<store>(0, out);
  }
  HWY_INLINE void one_row_lines(int64_t begin, int64_t end) const {
    const int64_t step = line_bytes();
    const uint8_t* const row = in_.rows[0] + head_;
    const uint8_t* const next = ahead_.rows[0] + ahead_.shift;
    const uint8_t* const later = far ? in_.rows[far_rows_] + head_ : nullptr;
    uint8_t* const out = out_ + head_;
    const Weight weight = in_.weights[0];
    const bool start_negative = in_.start_negative;
    int64_t h = begin * step;
    for (const int64_t last = (end - 1) * step; h < last; h += 2 * step) {
      if constexpr (far) fetch_lines_far(later + h, 2 * step);
      fetch_line(next + h);
      fetch_line(next + h + step);
      for (int64_t i = 0; i < 2 * kLineVectors; i += kPair) {
        one_row_vectors<T, store, kPair>(row + h + i * vector_bytes(), weight, start_negative,
                                         out + h + i * vector_bytes());
      }
    }
    if (h >= end * step) return;
    fetch_line(next + h);
    for (int64_t i = 0; i < kLineVectors; ++i) {
      one_row_vectors<T, store, 1>(row + h + i * vector_bytes(), weight, start_negative,
                                   out + h + i * vector_bytes());
    }
  }
  // Few rows: their addresses and weights stay in registers. A store might change what lies in
  // memory.
  template <int Count>
  HWY_NOINLINE void sum_lines(int64_t begin, int64_t end) const {
    const uint8_t *rows[Count], *next[Count], *later[Count];
    Weight weights[Count];
    HWY_UNROLL(4)
    for (int64_t i = 0; i < Count; ++i) {
      rows[i] = in_.rows[i] + head_;
      next[i] = ahead_.rows[i] + ahead_.shift;
      later[i] = far ? in_.rows[far_rows_ + i] + head_ : nullptr;
      weights[i] = in_.weights[i];
    }
    const Rows<Weight> in{rows, weights, Count, in_.start_negative};
    uint8_t* const out = out_ + head_;
    const int64_t last = end * line_bytes();
    for (int64_t h = begin * line_bytes(); h < last; h += line_bytes()) {
      sum_vectors<T, store, kLineVectors, Count>(in, h, out, [&](int64_t i) HWY_ATTR {
        fetch_line(next[i] + h);
        if constexpr (far) fetch_lines_far(later[i] + h, line_bytes());
      });
    }
  }
  template <int Count>
  HWY_NOINLINE void sum_many_lines(int64_t begin, int64_t end) const {
    const TokenSum token = *this;
    for (int64_t h = begin * line_bytes(); begin < end; ++begin, h += line_bytes()) {
      if constexpr (far) token.template fetch_far<Count>(token.head_ + h);
      sum_vectors<T, store, kLineVectors, Count>(token.in_, token.head_ + h, token.out_,
                                                 [&](int64_t i)
                                                     HWY_ATTR { token.ahead_.fetch(i, h); });
    }
  }
  template <int Count>
  HWY_INLINE void fetch_far(int64_t offset) const {
    const uint8_t* const* const later = in_.rows + far_rows_;
    for (int64_t i = 0; i < (Count ? Count : in_.count); ++i) {
      fetch_lines_far(later[i] + offset, line_bytes());
    }
  }
  static int64_t vector_bytes() { return static_cast<int64_t>(hn::Lanes(Bytes())); }

  // Vectors of two lines that are loaded at once.
  static constexpr int kPair = kLineVectors < 2 ? 2 : 4;

  Rows<Weight> in_;
  Ahead ahead_;
  uint8_t* out_;
  int64_t far_rows_;
  int64_t head_, num_lines_;
};

// Whether some token has a head or a tail.
template <Store store>
bool has_ends(const Gather& g) {
  const int64_t out = static_cast<int64_t>(reinterpret_cast<uintptr_t>(g.out));
  return g.row_bytes % line_bytes() || (store == Store::kStreaming && (out | g.out_step) % 64);
}

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
