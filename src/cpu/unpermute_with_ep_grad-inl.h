// The kernel text of UnpermuteWithEpGrad, compiled once per instruction set.
//
// Contract: takes any problem whose inputs have inner stride 1; writes the rows that the chunk's
// slots own, and their probs_grad, and nothing else; reads rows of the window only, and of those
// only what a slot names (prefetches aside, which never fault).
//
// The work is bound by memory, and memory is fast only when several rows are on their way at once.
// So slots are taken in groups; a group is worked on a block of bytes at a time, each slot in turn;
// and with every line, one is asked for that lies further on in the same row, or, towards the end
// of the row, at the start of the next group's rows. A row of the tokens' gradient serves all its
// slots out of the first-level cache.
#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/fp_mode.h"
#include "cpu/rows-inl.h"
#include "cpu/tuning.h"
#include "cpu/unpermute_with_ep_grad.h"

#if defined(MOE_CPU_UNPERMUTE_WITH_EP_GRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOE_CPU_UNPERMUTE_WITH_EP_GRAD_INL_H_
#undef MOE_CPU_UNPERMUTE_WITH_EP_GRAD_INL_H_
#else
#define MOE_CPU_UNPERMUTE_WITH_EP_GRAD_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace moe::cpu {
namespace HWY_NAMESPACE {

constexpr int64_t kPartials = 64;

// A stripe: 64 elements of a row, one for each partial sum of a dot product.
template <class T>
constexpr int64_t kStripeBytes = kPartials * static_cast<int64_t>(sizeof(T));

// The partial sums of a dot product. The vector at some byte of a stripe always meets the same
// sums, and those lie where the vector's accumulators put them. No instruction set that is compiled
// for has vectors longer than a stripe.
template <class T>
class Dot {
 public:
  using Number = Accumulator<T>;
  using L = Lanes<T>;
  using D = typename L::Acc;

  HWY_INLINE void clear() {
    const D d;
    for (int64_t i = 0; i < kPartials; i += static_cast<int64_t>(hn::Lanes(d))) {
      hn::Store(hn::Zero(d), d, sums_ + i);
    }
  }

  // The sums of the vector at a byte of the row, a multiple of the vector's length.
  HWY_INLINE Number* at(int64_t byte) {
    return sums_ + (byte & (kStripeBytes<T> - 1)) / static_cast<int64_t>(sizeof(T));
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

// What becomes of the slot's row.
enum class Write { kNothing, kCopy, kProduct };

// Where a job's bytes lie; what the job lacks is never touched, and an address that arithmetic may
// have stands for it. `ahead`: what is asked for while the byte of the same number is worked on.
template <class T>
struct Places {
  const uint8_t *grad, *row, *ahead_grad, *ahead_row;
  uint8_t* out;
  Accumulator<T> weight;
};

template <bool with_dot, class T>
HWY_INLINE void fetch_ahead(const Places<T>& at, int64_t h) {
  if constexpr (with_dot) hwy::Prefetch(at.ahead_row + h);
  hwy::Prefetch(at.ahead_grad + h);
}

// A vector of the slot's row, and the products of the dot product onto the sums of the vector's two
// accumulators.
template <class T, Write write, bool with_dot>
HWY_INLINE Raw do_vector(const Places<T>& at, int64_t h, hn::Vec<typename Lanes<T>::Acc>& sum_first,
                         hn::Vec<typename Lanes<T>::Acc>& sum_second) {
  using L = Lanes<T>;
  const Bytes d;
  const Raw grad = hn::LoadU(d, at.grad + h);
  if constexpr (write == Write::kCopy) return grad;
  const auto first = L::first(grad);
  auto second = first;
  if constexpr (L::kSplit) second = L::second(grad);
  if constexpr (with_dot) {
    const Raw row = hn::LoadU(d, at.row + h);
    sum_first = hn::Add(sum_first, hn::Mul(L::first(row), first));
    if constexpr (L::kSplit) sum_second = hn::Add(sum_second, hn::Mul(L::second(row), second));
  }
  if constexpr (write != Write::kProduct) return grad;
  const auto weight = hn::Set(typename L::Acc(), at.weight);
  if constexpr (L::kSplit) {
    return L::join_products(hn::Mul(first, weight), hn::Mul(second, weight));
  } else {
    return L::join(hn::Mul(first, weight));
  }
}

// The same with the sums in memory, and stored.
template <class T, Store store, Write write, bool with_dot>
HWY_INLINE void do_vector(const Places<T>& at, int64_t h, Accumulator<T>* sums) {
  const typename Lanes<T>::Acc d;
  const int64_t second_at = Lanes<T>::kSplit ? static_cast<int64_t>(hn::Lanes(d)) : 0;
  auto first = hn::Load(d, sums), second = hn::Load(d, sums + second_at);
  const Raw raw = do_vector<T, write, with_dot>(at, h, first, second);
  if constexpr (write != Write::kNothing) put<store>(raw, at.out + h);
  if constexpr (with_dot) {
    if constexpr (Lanes<T>::kSplit) hn::Store(second, d, sums + second_at);
    hn::Store(first, d, sums);
  }
}

#if !HWY_HAVE_SCALABLE
// Vectors that are loaded before any of them is stored: two lines of them.
constexpr size_t kTogether = 2 * kLineVectors;

// Some vectors of a stripe, from vector First on.
template <class T, Store store, Write write, bool with_dot, size_t First, size_t... Vectors>
HWY_INLINE void do_together(const Places<T>& at, int64_t h, hn::Vec<typename Lanes<T>::Acc>* acc,
                            std::index_sequence<Vectors...>) {
  constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(Bytes()));
  constexpr size_t kOf = Lanes<T>::kSplit ? 2 : 1;
  Raw raws[sizeof...(Vectors)];
  const auto compute = [&](auto vector) HWY_ATTR {
    constexpr size_t v = decltype(vector)::value, i = First + v;
    if (i * kStep % 64 == 0) fetch_ahead<with_dot>(at, h + i * kStep);
    raws[v] =
        do_vector<T, write, with_dot>(at, h + i * kStep, acc[kOf * i], acc[kOf * i + kOf - 1]);
  };
  (compute(std::integral_constant<size_t, Vectors>()), ...);
  if constexpr (write != Write::kNothing) {
    (put<store>(raws[Vectors], at.out + h + (First + Vectors) * kStep), ...);
  }
}

// Whole stripes, with the sums in registers meanwhile, as far as there are enough.
template <class T, Store store, Write write, bool with_dot, size_t... Parts>
HWY_INLINE int64_t do_stripes(const Places<T>& at, int64_t begin, int64_t end, Accumulator<T>* sums,
                              std::index_sequence<Parts...>) {
  const typename Lanes<T>::Acc d;
  constexpr size_t kLanes = hn::MaxLanes(typename Lanes<T>::Acc()), kAccs = kPartials / kLanes;
  hn::Vec<typename Lanes<T>::Acc> acc[kAccs];
  if constexpr (with_dot) {
    for (size_t i = 0; i < kAccs; ++i) acc[i] = hn::Load(d, sums + i * kLanes);
  }
  int64_t h = begin;
  for (; h + kStripeBytes<T> <= end; h += kStripeBytes<T>) {
    (do_together<T, store, write, with_dot, Parts * kTogether>(
         at, h, acc, std::make_index_sequence<kTogether>()),
     ...);
  }
  if constexpr (with_dot) {
    for (size_t i = 0; i < kAccs; ++i) hn::Store(acc[i], d, sums + i * kLanes);
  }
  return h;
}
#endif

// Fewer bytes than a vector, at the end of the rows: through copies of full vectors. The zeros
// behind them change no sum.
template <class T, Write write, bool with_dot>
HWY_NOINLINE void do_bytes(const Places<T>& at, int64_t begin, size_t bytes, Dot<T>& dot) {
  HWY_ALIGN uint8_t grad[HWY_MAX_BYTES] = {}, row[HWY_MAX_BYTES] = {}, out[HWY_MAX_BYTES];
  std::memcpy(grad, at.grad + begin, bytes);
  if constexpr (with_dot) std::memcpy(row, at.row + begin, bytes);
  const Places<T> copies{grad, row, grad, row, out, at.weight};
  do_vector<T, Store::kCached, write, with_dot>(copies, 0, dot.at(begin));
  if constexpr (write != Write::kNothing) std::memcpy(at.out + begin, out, bytes);
}

// The bytes [begin, end) of a job's rows; begin is a multiple of a stripe.
template <class T, Store store, Write write, bool with_dot>
HWY_NOINLINE void do_block(Places<T> at, int64_t begin, int64_t end, Dot<T>& dot) {
  const int64_t step = static_cast<int64_t>(hn::Lanes(Bytes()));
  int64_t h = begin;
#if !HWY_HAVE_SCALABLE
  constexpr size_t kParts = kStripeBytes<T> / 64 * kLineVectors / kTogether;
  h = do_stripes<T, store, write, with_dot>(at, h, end, dot.at(0),
                                            std::make_index_sequence<kParts>());
#endif
  for (; h + step <= end; h += step) {
    if (h % 64 < step) fetch_ahead<with_dot>(at, h);
    do_vector<T, store, write, with_dot>(at, h, dot.at(h));
  }
  if (h < end) do_bytes<T, write, with_dot>(at, h, static_cast<size_t>(end - h), dot);
}

// A job, by what there is to do.
template <class T, Store store>
HWY_INLINE void do_block(const Job& job, const Places<T>& at, bool weighted, int64_t begin,
                         int64_t end, Dot<T>& dot) {
  if (!job.out) {
    do_block<T, store, Write::kNothing, true>(at, begin, end, dot);
  } else if (job.row) {  // a dot product is for a prob
    do_block<T, store, Write::kProduct, true>(at, begin, end, dot);
  } else if (weighted) {
    do_block<T, store, Write::kProduct, false>(at, begin, end, dot);
  } else {
    do_block<T, store, Write::kCopy, false>(at, begin, end, dot);
  }
}

// The places of a job. While it is worked on, the bytes of `next` that are `shift` further on are
// asked for.
template <class T>
HWY_INLINE Places<T> places_of(const Job& job, const Job& next, int64_t shift) {
  const bool is_nan = job.weight != job.weight;
  const auto weight = static_cast<Accumulator<T>>(job.weight);
  return {.grad = job.grad,
          .row = job.row ? job.row : job.grad,
          .ahead_grad = next.grad + shift,
          .ahead_row = (next.row ? next.row : next.grad) + shift,
          .out = job.out ? job.out : const_cast<uint8_t*>(job.grad),
          // join_products takes this one only.
          .weight = is_nan ? std::numeric_limits<Accumulator<T>>::quiet_NaN() : weight};
}

// Jobs [begin, end) together; with their last bytes, the first ones of the jobs [end, next_end) are
// asked for.
template <class T, Store store>
void do_group(bool weighted, Job* jobs, int64_t begin, int64_t end, int64_t next_end,
              int64_t row_bytes) {
  Dot<T> dots[kMaxGradGroup];
  for (int64_t j = begin; j < end; ++j) {
    if (jobs[j].row) dots[j - begin].clear();
  }
  const auto pass = [&](int64_t first, int64_t last, int64_t next, int64_t shift) HWY_ATTR {
    for (int64_t byte = first; byte < last; byte += kGradBlockBytes) {
      const int64_t block_end = std::min(byte + kGradBlockBytes, last);
      for (int64_t j = begin; j < end; ++j) {
        const bool has_next = j + next < next_end;
        const Places<T> at =
            places_of<T>(jobs[j], jobs[has_next ? j + next : j], has_next ? shift : 0);
        do_block<T, store>(jobs[j], at, weighted, byte, block_end, dots[j - begin]);
      }
    }
  };
  const int64_t turn = std::max<int64_t>(0, row_bytes - kGradAheadBytes) & -kStripeBytes<T>;
  pass(0, turn, 0, row_bytes - turn);
  pass(turn, row_bytes, end - begin, -turn);
  for (int64_t j = begin; j < end; ++j) {
    if (jobs[j].row) jobs[j].dot = dots[j - begin].total();
  }
}

template <class T, Store store>
void do_jobs(const UnpermuteWithEpGradProblem& p, Job* jobs, int64_t count) {
  const int64_t row_bytes = p.hidden_size * int64_t{sizeof(T)};
  const int64_t group = std::clamp(kGradGroupBytes / (row_bytes + 1), kGradStreams, kMaxGradGroup);
  for (int64_t begin = 0; begin < count; begin += group) {
    const int64_t end = std::min(begin + group, count);
    do_group<T, store>(p.has_probs, jobs, begin, end, std::min(end + group, count), row_bytes);
  }
}

inline void run_slots(const UnpermuteWithEpGradProblem& p, const UnpermuteWithEpGradPointers& at,
                      const RowOwners& owners, const SlotChunk& chunk, bool streaming) {
  const FpMode mode;
  note_target(hwy::TargetName(HWY_TARGET));
  Job jobs[kMaxJobs];
  for (SlotChunk rest = chunk; rest.first < rest.last;) {
    const int64_t count = find_jobs(p, at, owners, rest, jobs);
    visit_float(p.tokens_dtype, [&](auto t) {
      using T = decltype(t);
      const auto run = streaming ? do_jobs<T, Store::kStreaming> : do_jobs<T, Store::kCached>;
      run(p, jobs, count);
    });
    store_dots(p, at, jobs, count);
  }
  if (streaming) hwy::FlushStream();
}

inline void run_unpermute_grad(const UnpermuteWithEpGradProblem& p,
                               const UnpermuteWithEpGradPointers& at, void* workspace) {
  run_in_chunks(p, at, workspace, run_slots);
}

inline const char* unpermute_grad_target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
