// The kernel text of UnpermuteWithEpGrad, compiled once per instruction set.
//
// Contract: takes any problem whose inputs have inner stride 1; writes the rows that the chunk's
// slots own, and their probs_grad, and nothing else; reads rows of the window only, and of those
// only what a slot names (prefetches aside, which never fault).
//
// The work is bound by memory, and memory is fast only when many rows are on their way at once. So
// slots are taken in groups; a group is worked on a block of bytes at a time, each slot in turn;
// and while one block is worked on, the next one is asked for. A row of the tokens' gradient serves
// all its slots out of the first-level cache.
#include <algorithm>
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
  // One vector's lanes: each half onto the other. An element at a time: vectors would wait for what
  // single stores leave behind.
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

  HWY_ALIGN Number sums_[kPartials];
};

// What becomes of the slot's row.
enum class Write { kNothing, kCopy, kProduct };

// The work on one vector: at these addresses, null where the job has none. The sums are those of
// the vector's two accumulators.
template <class T, Store store, Write write, bool with_dot>
HWY_INLINE void do_vector(const uint8_t* grad_at, const uint8_t* row_at, uint8_t* out,
                          hn::Vec<typename Lanes<T>::Acc> weight,
                          hn::Vec<typename Lanes<T>::Acc>& sum_first,
                          hn::Vec<typename Lanes<T>::Acc>& sum_second) {
  using L = Lanes<T>;
  const Bytes d;
  const Raw grad = hn::LoadU(d, grad_at);
  if constexpr (write == Write::kCopy) return put<store>(grad, out);
  const auto first = L::first(grad);
  auto second = first;
  if constexpr (L::kSplit) second = L::second(grad);
  if constexpr (write == Write::kProduct && L::kSplit) {
    put<store>(L::join(hn::Mul(first, weight), hn::Mul(second, weight)), out);
  } else if constexpr (write == Write::kProduct) {
    put<store>(L::join(hn::Mul(first, weight)), out);
  }
  if constexpr (with_dot) {
    const Raw row = hn::LoadU(d, row_at);
    sum_first = hn::Add(sum_first, hn::Mul(L::first(row), first));
    if constexpr (L::kSplit) sum_second = hn::Add(sum_second, hn::Mul(L::second(row), second));
  }
}

// The same with the sums in memory.
template <class T, Store store, Write write, bool with_dot>
HWY_INLINE void do_vector(const uint8_t* grad, const uint8_t* row, uint8_t* out,
                          hn::Vec<typename Lanes<T>::Acc> weight, Accumulator<T>* sums) {
  const typename Lanes<T>::Acc d;
  const int64_t second_at = Lanes<T>::kSplit ? static_cast<int64_t>(hn::Lanes(d)) : 0;
  auto first = hn::Load(d, sums), second = hn::Load(d, sums + second_at);
  do_vector<T, store, write, with_dot>(grad, row, out, weight, first, second);
  if constexpr (with_dot) {
    if constexpr (Lanes<T>::kSplit) hn::Store(second, d, sums + second_at);
    hn::Store(first, d, sums);
  }
}

// Whole stripes, with the sums in registers meanwhile, as far as there are enough.
#if !HWY_HAVE_SCALABLE
template <class T, Store store, Write write, bool with_dot, size_t... Vectors>
HWY_INLINE int64_t do_stripes(const uint8_t* grad, const uint8_t* row, uint8_t* out,
                              hn::Vec<typename Lanes<T>::Acc> weight, int64_t begin, int64_t end,
                              Accumulator<T>* sums, std::index_sequence<Vectors...>) {
  const typename Lanes<T>::Acc d;
  constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(Bytes()));
  constexpr size_t kLanes = hn::MaxLanes(typename Lanes<T>::Acc()), kOf = Lanes<T>::kSplit ? 2 : 1;
  hn::Vec<typename Lanes<T>::Acc> acc[kOf * sizeof...(Vectors)];
  if constexpr (with_dot) {
    ((acc[kOf * Vectors] = hn::Load(d, sums + kOf * Vectors * kLanes),
      acc[kOf * Vectors + kOf - 1] = hn::Load(d, sums + (kOf * Vectors + kOf - 1) * kLanes)),
     ...);
  }
  int64_t h = begin;
  for (; h + kStripeBytes<T> <= end; h += kStripeBytes<T>) {
    (do_vector<T, store, write, with_dot>(grad + h + Vectors * kStep, row + h + Vectors * kStep,
                                          out + h + Vectors * kStep, weight, acc[kOf * Vectors],
                                          acc[kOf * Vectors + kOf - 1]),
     ...);
  }
  if constexpr (with_dot) {
    ((hn::Store(acc[kOf * Vectors], d, sums + kOf * Vectors * kLanes),
      hn::Store(acc[kOf * Vectors + kOf - 1], d, sums + (kOf * Vectors + kOf - 1) * kLanes)),
     ...);
  }
  return h;
}
#endif

// Fewer bytes than a vector, at the end of the rows: through copies of full vectors. The zeros
// behind them change no sum.
template <class T, Write write, bool with_dot>
HWY_NOINLINE void do_bytes(const Job& job, int64_t begin, size_t bytes, Dot<T>& dot) {
  HWY_ALIGN uint8_t grad[HWY_MAX_BYTES] = {}, row[HWY_MAX_BYTES] = {}, out[HWY_MAX_BYTES];
  std::memcpy(grad, job.grad + begin, bytes);
  if constexpr (with_dot) std::memcpy(row, job.row + begin, bytes);
  const auto weight = hn::Set(typename Lanes<T>::Acc(), static_cast<Accumulator<T>>(job.weight));
  do_vector<T, Store::kCached, write, with_dot>(grad, row, out, weight, dot.at(begin));
  if constexpr (write != Write::kNothing) std::memcpy(job.out + begin, out, bytes);
}

// The bytes [begin, end) of a job's rows; begin is a multiple of a stripe.
template <class T, Store store, Write write, bool with_dot>
HWY_NOINLINE void do_block(const Job& job, int64_t begin, int64_t end, Dot<T>& dot) {
  const int64_t step = static_cast<int64_t>(hn::Lanes(Bytes()));
  const auto weight = hn::Set(typename Lanes<T>::Acc(), static_cast<Accumulator<T>>(job.weight));
  // What a job lacks is never touched; an address that arithmetic may have stands for it.
  const uint8_t *const grad = job.grad, *const row = with_dot ? job.row : grad;
  uint8_t* const out = write == Write::kNothing ? const_cast<uint8_t*>(grad) : job.out;
  int64_t h = begin;
#if !HWY_HAVE_SCALABLE
  constexpr size_t kVectors = kStripeBytes<T> / static_cast<int64_t>(hn::MaxLanes(Bytes()));
  h = do_stripes<T, store, write, with_dot>(grad, row, out, weight, h, end, dot.at(0),
                                            std::make_index_sequence<kVectors>());
#endif
  for (; h + step <= end; h += step) {
    do_vector<T, store, write, with_dot>(grad + h, row + h, out + h, weight, dot.at(h));
  }
  if (h < end) do_bytes<T, write, with_dot>(job, h, static_cast<size_t>(end - h), dot);
}

// A job, by what there is to do.
template <class T, Store store>
HWY_INLINE void do_block(const Job& job, bool weighted, int64_t begin, int64_t end, Dot<T>& dot) {
  if (!job.out) {
    do_block<T, store, Write::kNothing, true>(job, begin, end, dot);
  } else if (job.row) {  // a dot product is for a prob
    do_block<T, store, Write::kProduct, true>(job, begin, end, dot);
  } else if (weighted) {
    do_block<T, store, Write::kProduct, false>(job, begin, end, dot);
  } else {
    do_block<T, store, Write::kCopy, false>(job, begin, end, dot);
  }
}

// Asks for the bytes [begin, end) of what a job reads. Slots of a token share its gradient.
HWY_INLINE void fetch(const Job& job, bool same_token, int64_t begin, int64_t end) {
  for (int64_t h = begin; h < end; h += 64) {
    if (job.row) hwy::Prefetch(job.row + h);
    if (!same_token) hwy::Prefetch(job.grad + h);
  }
}

// Jobs [begin, end) together; while the last block is worked on, the first one of [end, next_end)
// is asked for.
template <class T, Store store>
void do_group(bool weighted, Job* jobs, int64_t begin, int64_t end, int64_t next_end,
              int64_t row_bytes) {
  Dot<T> dots[kMaxGradGroup];
  for (int64_t j = begin; j < end; ++j) {
    if (jobs[j].row) dots[j - begin].clear();
  }
  const auto same_token = [&](int64_t j) { return j > 0 && jobs[j].grad == jobs[j - 1].grad; };
  for (int64_t byte = 0; byte < row_bytes; byte += kGradBlockBytes) {
    const int64_t block_end = std::min(byte + kGradBlockBytes, row_bytes);
    const int64_t ahead_end = std::min(block_end + kGradBlockBytes, row_bytes);
    for (int64_t j = begin; j < end; ++j) {
      if (block_end < row_bytes) {
        fetch(jobs[j], same_token(j), block_end, ahead_end);
      } else if (j - begin + end < next_end) {
        const int64_t next = j - begin + end;
        fetch(jobs[next], same_token(next), 0, std::min(kGradBlockBytes, row_bytes));
      }
      do_block<T, store>(jobs[j], weighted, byte, block_end, dots[j - begin]);
    }
  }
  for (int64_t j = begin; j < end; ++j) {
    if (jobs[j].row) jobs[j].dot = dots[j - begin].total();
  }
}

template <class T, Store store>
void do_jobs(const UnpermuteWithEpGradProblem& p, Job* jobs, int64_t count) {
  const int64_t row_bytes = p.hidden_size * int64_t{sizeof(T)};
  const int64_t group = std::clamp(kGradAheadBytes / (row_bytes + 1), kGradStreams, kMaxGradGroup);
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
