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

#include "core/fp_mode.h"
#include "cpu/rows-inl.h"
#include "cpu/tuning.h"
#include "cpu/unpermute_with_ep_grad.h"
#include "cpu/unpermute_with_ep_grad_jobs-inl.h"

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

// Whether vectors fit the stripes of every dtype, as a dot product needs.
inline bool vectors_fit_stripes() {
  return static_cast<int64_t>(hn::Lanes(Bytes())) <= kStripeBytes<uint16_t>;
}

// What a job reads while the byte of the same number is worked on is asked for here.
struct AheadOfJob {
  const uint8_t *grad, *row;

  HWY_INLINE void fetch(int64_t h) const {
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
    h = add_stripes<store, writes, 0>(job, weight, begin, end, ahead);
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
  // Whole stripes, from vector First of each on, as many vectors as registers can keep the sums of;
  // and then the others. The result is where the last stripe ends.
  template <Store store, bool writes, int First>
  HWY_INLINE int64_t add_stripes(const Job& job, hn::Vec<D> weight, int64_t begin, int64_t end,
                                 const AheadOfJob& ahead) {
    const D d;
    const Bytes bytes;
    constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(bytes));
    constexpr int kVectors = static_cast<int>(kStripeBytes<T> / kStep), kOf = L::kSplit ? 2 : 1;
    constexpr int kEnd = std::min(kVectors, First + 8 / kOf), kSums = (kEnd - First) * kOf;
    Number* const sums = sums_ + First * kOf * hn::MaxLanes(d);
    const auto get = [&](int i) HWY_ATTR {
      return i < kSums ? hn::Load(d, sums + i * hn::MaxLanes(d)) : hn::Zero(d);
    };
    // Names, not an array: of that, GCC kept a second copy in memory.
    auto s0 = get(0), s1 = get(1), s2 = get(2), s3 = get(3);
    auto s4 = get(4), s5 = get(5), s6 = get(6), s7 = get(7);
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
      add_four(s0, s1, s2, s3, 0);
      add_four(s4, s5, s6, s7, 4);
    }
    const auto set = [&](int i, hn::Vec<D> sum) HWY_ATTR {
      if (i < kSums) hn::Store(sum, d, sums + i * hn::MaxLanes(d));
    };
    set(0, s0), set(1, s1), set(2, s2), set(3, s3);
    set(4, s4), set(5, s5), set(6, s6), set(7, s7);
    if constexpr (kEnd < kVectors) {
      add_stripes<store, writes, kEnd>(job, weight, begin, end, ahead);
    }
    return h;
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

// The bytes [begin, end) of the slot's row alone. Two lines are loaded before they are stored.
template <class T, Store store, bool weighted>
HWY_INLINE void write_row(const Job& job, Accumulator<T> by, int64_t begin, int64_t end,
                          const AheadOfJob& ahead) {
  const Bytes d;
  const int64_t step = static_cast<int64_t>(hn::Lanes(d));
  const auto weight = hn::Set(typename Lanes<T>::Acc(), by);
  const uint8_t* const grad = job.grad;
  uint8_t* const out = job.out;
  const auto get = [&](int64_t h)
                       HWY_ATTR { return row_vector<T, weighted>(hn::LoadU(d, grad + h), weight); };
  int64_t h = begin;
  for (; h + 4 * step <= end; h += 4 * step) {
    for (int64_t line = 0; line < 4 * step; line += 64) ahead.fetch(h + line);
    const Raw r0 = get(h), r1 = get(h + step), r2 = get(h + 2 * step), r3 = get(h + 3 * step);
    put<store>(r0, out + h);
    put<store>(r1, out + h + step);
    put<store>(r2, out + h + 2 * step);
    put<store>(r3, out + h + 3 * step);
  }
  for (; h + step <= end; h += step) put<store>(get(h), out + h);
  if (h < end) {
    write_bytes<T, weighted>(grad + h, static_cast<size_t>(end - h), weight, out + h);
  }
}

// The bytes [begin, end) of a job's rows.
template <class T, Store store>
HWY_NOINLINE void do_block(const Job& job, const AheadOfJob ahead, bool weighted, int64_t begin,
                           int64_t end, Dot<T>& dot) {
  const auto weight = static_cast<Accumulator<T>>(narrow_nan(job.weight));
  if (job.row && job.out) {
    dot.template add<store, true>(job, weight, begin, end, ahead);
  } else if (job.row) {
    dot.template add<store, false>(job, weight, begin, end, ahead);
  } else if (weighted) {
    write_row<T, store, true>(job, weight, begin, end, ahead);
  } else {
    write_row<T, store, false>(job, weight, begin, end, ahead);
  }
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
        const Job& then = jobs[has_next ? j + next : j];
        const int64_t by = has_next ? shift : 0;
        const AheadOfJob ahead{then.grad + by, (then.row ? then.row : then.grad) + by};
        do_block<T, store>(jobs[j], ahead, weighted, byte, block_end, dots[j - begin]);
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

// Jobs in groups, and how many of them were done: the last group stays, unless it is the last of
// all, so that its first lines are asked for before more jobs are found.
template <class T, Store store>
int64_t do_jobs(const UnpermuteWithEpGradProblem& p, Job* jobs, int64_t count, bool are_last) {
  const int64_t row_bytes = p.hidden_size * int64_t{sizeof(T)};
  const int64_t group = std::clamp(kGradGroupBytes / (row_bytes + 1), kGradStreams, kMaxGradGroup);
  int64_t begin = 0;
  for (; begin < count && (are_last || begin + group < count); begin += group) {
    const int64_t end = std::min(begin + group, count);
    do_group<T, store>(p.has_probs, jobs, begin, end, std::min(end + group, count), row_bytes);
  }
  return std::min(begin, count);
}

inline void run_slots(const UnpermuteWithEpGradProblem& p, const UnpermuteWithEpGradPointers& at,
                      const RowOwners& owners, const SlotChunk& chunk, bool streaming) {
  const FpMode mode;
  note_target(hwy::TargetName(HWY_TARGET));
  Job jobs[kMaxJobs];
  int64_t count = 0;
  SlotChunk rest = chunk;
  while (rest.first < rest.last) {
    count = find_jobs(p, at, owners, rest, jobs, count);
    visit_float(p.tokens_dtype, [&](auto t) {
      using T = decltype(t);
      const auto run = streaming ? do_jobs<T, Store::kStreaming> : do_jobs<T, Store::kCached>;
      const int64_t done = run(p, jobs, count, rest.first == rest.last);
      store_dots(p, at, jobs, done);
      count = std::copy(jobs + done, jobs + count, jobs) - jobs;
    });
  }
  if (streaming) hwy::FlushStream();
}

inline void run_unpermute_grad(const UnpermuteWithEpGradProblem& p,
                               const UnpermuteWithEpGradPointers& at, void* workspace) {
  run_in_chunks(p, at, workspace, claim_slots, run_slots);
}

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
