// The dot product of a row and a gradient, and the row's gradient in the same pass; compiled once
// per instruction set.
#include <algorithm>
#include <cstring>

#include "cpu/rows-inl.h"
#include "cpu/unpermute_with_ep_grad.h"

#if defined(MOE_CPU_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOE_CPU_DOT_INL_H_
#undef MOE_CPU_DOT_INL_H_
#else
#define MOE_CPU_DOT_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace moe::cpu {
namespace HWY_NAMESPACE {

constexpr int64_t kPartials = 64;

// A stripe: 64 elements of a row, one for each partial sum of a dot product.
template <class T>
constexpr int64_t kStripeBytes = kPartials * static_cast<int64_t>(sizeof(T));

// Whether vectors fit the stripes of every dtype, as a dot product needs.
inline bool vectors_fit_stripes() {
  return static_cast<int64_t>(hn::Lanes(Bytes())) <= kStripeBytes<uint16_t>;
}

// What a job reads while the byte of the same number is worked on is asked for here; and what one
// reads long after it, if there is such a row.
struct AheadOfJob {
  const uint8_t *grad, *row, *far_row;

  HWY_INLINE void fetch(int64_t h) const {
    if (far_row) fetch_lines_far(far_row + h, 64);
    hwy::Prefetch(row + h);
    hwy::Prefetch(grad + h);
  }
};

// A vector of the slot's row: the gradient, or its product with the weight.
template <class T, bool weighted>
HWY_INLINE Raw row_vector(Raw grad, hn::Vec<typename Lanes<T>::Acc> weight) {
  using L = Lanes<T>;
  if constexpr (!weighted) {
    return grad;
  } else if constexpr (L::kSplit) {
    return L::join(hn::Mul(L::first(grad), weight), hn::Mul(L::second(grad), weight));
  } else {
    return L::join(hn::Mul(L::first(grad), weight));
  }
}

// Fewer bytes of it than a vector, through a copy.
template <class T, bool weighted>
HWY_NOINLINE void write_bytes(const uint8_t* grad, size_t bytes,
                              hn::Vec<typename Lanes<T>::Acc> weight, uint8_t* out) {
  const Bytes d;
  HWY_ALIGN uint8_t copy[HWY_MAX_BYTES] = {};
  std::memcpy(copy, grad, bytes);
  hn::Store(row_vector<T, weighted>(hn::Load(d, copy), weight), d, copy);
  std::memcpy(out, copy, bytes);
}

// The partial sums of a dot product. The vector at some byte of a stripe always meets the same
// sums, and those lie where the vector's accumulators put them. Vectors are no longer than a
// stripe.
template <class T>
class Dot {
 public:
  using Number = Accumulator<T>;
  using L = Lanes<T>;
  using D = typename L::Acc;

#if HWY_HAVE_SCALABLE
  static constexpr bool kTakesRows = false;
#else
  // Whether registers can keep the sums of a whole stripe.
  static constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(Bytes()));
  static constexpr int kVectors = static_cast<int>(kStripeBytes<T> / kStep);
  static constexpr int kOf = L::kSplit ? 2 : 1;  // sums of a vector
  static constexpr bool kTakesRows = kVectors * kOf == 4 || kVectors * kOf == 8;

  // The dot product of a whole row of whole stripes; `add` says what else.
  template <Store store, bool writes>
  static HWY_INLINE Number of_row(const Job& job, Number by, int64_t row_bytes,
                                  const AheadOfJob& ahead) {
    const auto zero = hn::Zero(D());
    Sums sums{zero, zero, zero, zero, zero, zero, zero, zero};
    add_stripes<store, writes, 0>(job, hn::Set(D(), by), 0, row_bytes, ahead, sums);
    return total_of(sums);
  }
#endif

  HWY_INLINE void clear() {
    const D d;
    for (int64_t i = 0; i < kPartials; i += static_cast<int64_t>(hn::Lanes(d))) {
      hn::Store(hn::Zero(d), d, sums_ + i);
    }
  }

  // Adds the products of the bytes [begin, end) of a job's rows, and writes those of the slot's row
  // in the same pass, if the slot has one; begin is a multiple of a stripe.
  template <Store store, bool writes>
  HWY_INLINE void add(const Job& job, Number by, int64_t begin, int64_t end,
                      const AheadOfJob& ahead) {
    const Bytes d;
    const int64_t step = static_cast<int64_t>(hn::Lanes(d));
    const auto weight = hn::Set(D(), by);
    int64_t h = begin;
#if !HWY_HAVE_SCALABLE
    h = add_all_stripes<store, writes, 0>(job, weight, begin, end, ahead);
#endif
    for (; h + step <= end; h += step) {
      if (h % 64 < step) ahead.fetch(h);
      const Raw grad = hn::LoadU(d, job.grad + h);
      add_vector(grad, hn::LoadU(d, job.row + h), at(h));
      if constexpr (writes) put<store>(row_vector<T, true>(grad, weight), job.out + h);
    }
    if (h == end) return;
    const size_t bytes = static_cast<size_t>(end - h);
    add_bytes(job.grad + h, job.row + h, bytes, at(h));
    if constexpr (writes) write_bytes<T, true>(job.grad + h, bytes, weight, job.out + h);
  }

  // Sum p gets sum p + 32, then + 16, and so on.
  HWY_INLINE Number total() {
    const D d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t width = kPartials;
    while (width > (L::kSplit ? 2 * lanes : lanes)) {
      width /= 2;
      for (int64_t i = 0; i < width; i += lanes) {
        hn::Store(hn::Add(hn::Load(d, sums_ + i), hn::Load(d, sums_ + i + width)), d, sums_ + i);
      }
    }
    if constexpr (!L::kSplit) {
      return fold(sums_, lanes);
    } else if constexpr (L::kEvenOdd) {
      // Neighbours stand in different accumulators, and meet last.
      return fold(sums_, lanes) + fold(sums_ + lanes, lanes);
    } else {
      hn::Store(hn::Add(hn::Load(d, sums_), hn::Load(d, sums_ + lanes)), d, sums_);
      return fold(sums_, lanes);
    }
  }

 private:
  // The sums of the vector at a byte of the row, a multiple of the vector's length.
  HWY_INLINE Number* at(int64_t byte) {
    return sums_ + (byte & (kStripeBytes<T> - 1)) / static_cast<int64_t>(sizeof(T));
  }

  static HWY_INLINE void add_vector(Raw grad, Raw row, Number* sums) {
    const D d;
    const auto add = [&](auto a, auto b, Number* sum)
                         HWY_ATTR { hn::Store(hn::Add(hn::Load(d, sum), hn::Mul(a, b)), d, sum); };
    add(L::first(row), L::first(grad), sums);
    if constexpr (L::kSplit) add(L::second(row), L::second(grad), sums + hn::Lanes(d));
  }

  // Fewer bytes than a vector, at the end of the rows: through copies of full vectors. The zeros
  // behind them change no sum.
  static HWY_NOINLINE void add_bytes(const uint8_t* grad, const uint8_t* row, size_t bytes,
                                     Number* sums) {
    HWY_ALIGN uint8_t grads[HWY_MAX_BYTES] = {}, rows[HWY_MAX_BYTES] = {};
    std::memcpy(grads, grad, bytes);
    std::memcpy(rows, row, bytes);
    add_vector(hn::Load(Bytes(), grads), hn::Load(Bytes(), rows), sums);
  }

#if !HWY_HAVE_SCALABLE
  // As many as registers can keep. Names, not an array: of that, GCC kept a second copy in memory.
  static constexpr int kMaxSums = 8;
  struct Sums {
    hn::Vec<D> s0, s1, s2, s3, s4, s5, s6, s7;
  };
  // The vectors [First, end_of(First)) of a stripe go together.
  static constexpr int end_of(int first) { return std::min(kVectors, first + kMaxSums / kOf); }

  // Whole stripes, as many vectors of each as registers can keep the sums of; and then the others.
  // The result is where the last stripe ends.
  template <Store store, bool writes, int First>
  HWY_INLINE int64_t add_all_stripes(const Job& job, hn::Vec<D> weight, int64_t begin, int64_t end,
                                     const AheadOfJob& ahead) {
    const D d;
    constexpr int kEnd = end_of(First), kSums = (kEnd - First) * kOf;
    Number* const at = sums_ + First * kOf * hn::MaxLanes(d);
    const auto get = [&](int i) HWY_ATTR {
      return i < kSums ? hn::Load(d, at + i * hn::MaxLanes(d)) : hn::Zero(d);
    };
    Sums sums{get(0), get(1), get(2), get(3), get(4), get(5), get(6), get(7)};
    const int64_t h = add_stripes<store, writes, First>(job, weight, begin, end, ahead, sums);
    const auto set = [&](int i, hn::Vec<D> sum) HWY_ATTR {
      if (i < kSums) hn::Store(sum, d, at + i * hn::MaxLanes(d));
    };
    set(0, sums.s0), set(1, sums.s1), set(2, sums.s2), set(3, sums.s3);
    set(4, sums.s4), set(5, sums.s5), set(6, sums.s6), set(7, sums.s7);
    if constexpr (kEnd < kVectors) {
      add_all_stripes<store, writes, kEnd>(job, weight, begin, end, ahead);
    }
    return h;
  }

  template <Store store, bool writes, int First>
  static HWY_INLINE int64_t add_stripes(const Job& job, hn::Vec<D> weight, int64_t begin,
                                        int64_t end, const AheadOfJob& ahead, Sums& sums) {
    const Bytes bytes;
    constexpr int kSums = (end_of(First) - First) * kOf;
    const uint8_t *const grad = job.grad, *const row = job.row;
    uint8_t* const out = job.out;
    int64_t h = begin;
    // The vector of sum i; a and b are its sums.
    const auto add = [&](auto& a, auto& b, int64_t i) HWY_ATTR {
      const int64_t in_stripe = (First + i / kOf) * kStep, at = h + in_stripe;
      if (in_stripe % 64 == 0) ahead.fetch(at);
      const Raw grads = hn::LoadU(bytes, grad + at), rows = hn::LoadU(bytes, row + at);
      a = hn::Add(a, hn::Mul(L::first(rows), L::first(grads)));
      if constexpr (L::kSplit) b = hn::Add(b, hn::Mul(L::second(rows), L::second(grads)));
      return writes ? row_vector<T, true>(grads, weight) : grads;
    };
    const auto write = [&](Raw raw, int64_t i) HWY_ATTR {
      if (writes) put<store>(raw, out + h + (First + i / kOf) * kStep);
    };
    // Loads before stores.
    const auto add_four = [&](auto& a, auto& b, auto& c, auto& e, int64_t i) HWY_ATTR {
      if (i >= kSums) return;
      const Raw r0 = add(a, b, i), r1 = L::kSplit ? r0 : add(b, b, i + 1);
      const Raw r2 = add(c, e, i + 2), r3 = L::kSplit ? r2 : add(e, e, i + 3);
      write(r0, i);
      if (!L::kSplit) write(r1, i + 1);
      write(r2, i + 2);
      if (!L::kSplit) write(r3, i + 3);
    };
    for (; h + kStripeBytes<T> <= end; h += kStripeBytes<T>) {
      add_four(sums.s0, sums.s1, sums.s2, sums.s3, 0);
      add_four(sums.s4, sums.s5, sums.s6, sums.s7, 4);
    }
    return h;
  }

  // As total() does it, of the sums of a whole stripe.
  static HWY_INLINE Number total_of(Sums sums) {
    if constexpr (kVectors * kOf > 4) {
      sums.s0 = hn::Add(sums.s0, sums.s4), sums.s1 = hn::Add(sums.s1, sums.s5);
      sums.s2 = hn::Add(sums.s2, sums.s6), sums.s3 = hn::Add(sums.s3, sums.s7);
    }
    sums.s0 = hn::Add(sums.s0, sums.s2), sums.s1 = hn::Add(sums.s1, sums.s3);
    if constexpr (L::kSplit) {
      if constexpr (L::kEvenOdd) return fold_vector(D(), sums.s0) + fold_vector(D(), sums.s1);
    }
    return fold_vector(D(), hn::Add(sums.s0, sums.s1));
  }
#endif

  // One vector's lanes: each half onto the other.
#if HWY_HAVE_SCALABLE
  static HWY_INLINE Number fold(Number* sums, int64_t lanes) {
    const hn::CappedTag<Number, 1> one;
    while (lanes > 1) {
      lanes /= 2;
      for (int64_t i = 0; i < lanes; ++i) {
        hn::Store(hn::Add(hn::Load(one, sums + i), hn::Load(one, sums + i + lanes)), one, sums + i);
      }
    }
    return sums[0];
  }
#else
  static HWY_INLINE Number fold(Number* sums, int64_t /*lanes*/) {
    const D d;
    return fold_vector(d, hn::Load(d, sums));
  }
  template <class Tag>
  static HWY_INLINE Number fold_vector(Tag /*d*/, hn::Vec<Tag> v) {
    if constexpr (hn::MaxLanes(Tag()) == 1) {
      return hn::GetLane(v);
    } else {
      const hn::Half<Tag> half;
      return fold_vector(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
    }
  }
#endif

  HWY_ALIGN Number sums_[kPartials];
};

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
