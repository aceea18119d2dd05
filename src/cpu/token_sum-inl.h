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

// One token's sums.
template <class T, class Weight, Store store>
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
  // Lines [begin, end) counted from the head.
  HWY_INLINE void lines(int64_t begin, int64_t end, const Ahead& ahead) const {
    end = std::min(end, num_lines_);
    far_rows_ ? lines<true>(begin, end, ahead) : lines<false>(begin, end, ahead);
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
  // Counts that are frequent have a text of their own. `far`: rows are asked for twice.
  template <bool far>
  HWY_INLINE void lines(int64_t begin, int64_t end, const Ahead& ahead) const {
    switch (in_.count) {
      case 0:
        return zero_lines(begin, end);
      case 1:
        return one_row_lines<far>(begin, end, ahead);
      case 2:
        return sum_lines<2, far>(begin, end, ahead);
      case 4:
        return sum_lines<4, far>(begin, end, ahead);
      case 8:
        return sum_lines<8, far>(begin, end, ahead);
      default:
        return sum_lines<0, far>(begin, end, ahead);
    }
  }
  void zero_lines(int64_t begin, int64_t end) const {
    for (int64_t line = begin; line < end; ++line) {
      zero_line<store>(head_ + line * line_bytes(), out_);
    }
  }
  template <bool far>
  HWY_INLINE void one_row_lines(int64_t begin, int64_t end, const Ahead& ahead) const {
    const int64_t step = line_bytes(), first = begin * step;
    const uint8_t* row = in_.rows[0] + head_ + first;
    const uint8_t* next = ahead.rows[0] + ahead.shift + first;
    const uint8_t* later = far ? in_.rows[far_rows_] + head_ + first : nullptr;
    uint8_t* out = out_ + head_ + first;
    const Weight weight = in_.weights[0];
    const bool start_negative = in_.start_negative;
    int64_t left = end - begin;
    for (; left >= 2; left -= 2) {
      if constexpr (far) fetch_lines_far(later, 2 * step), later += 2 * step;
      fetch_line(next);
      fetch_line(next + step);
      for (int64_t i = 0; i < 2 * kLineVectors; i += kPair) {
        one_row_vectors<T, store, kPair>(row, weight, start_negative, out);
        row += kPair * vector_bytes(), out += kPair * vector_bytes();
      }
      next += 2 * step;
    }
    if (left < 1) return;
    fetch_line(next);
    for (int64_t i = 0; i < kLineVectors; ++i) {
      one_row_vectors<T, store, 1>(row + i * vector_bytes(), weight, start_negative,
                                   out + i * vector_bytes());
    }
  }
  template <int Count, bool far>
  HWY_NOINLINE void sum_lines(int64_t begin, int64_t end, Ahead ahead) const {
    const TokenSum token = *this;
    for (int64_t h = begin * line_bytes(); begin < end; ++begin, h += line_bytes()) {
      if constexpr (far) token.template fetch_far<Count>(token.head_ + h);
      sum_vectors<T, store, kLineVectors, Count>(token.in_, token.head_ + h, token.out_,
                                                 [&](int64_t i) HWY_ATTR { ahead.fetch(i, h); });
    }
  }
  template <int Count>
  HWY_INLINE void fetch_far(int64_t offset) const {
    const uint8_t* const* const far = in_.rows + far_rows_;
    for (int64_t i = 0; i < (Count ? Count : in_.count); ++i) {
      fetch_lines_far(far[i] + offset, line_bytes());
    }
  }
  static int64_t vector_bytes() { return static_cast<int64_t>(hn::Lanes(Bytes())); }

  // Vectors of two lines that are loaded at once.
  static constexpr int kPair = kLineVectors < 2 ? 2 : 4;

  Rows<Weight> in_;
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
