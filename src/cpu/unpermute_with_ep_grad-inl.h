// The kernel text of UnpermuteWithEpGrad, compiled once per instruction set.
//
// Contract: takes any problem whose inputs have inner stride 1; writes the rows that the chunk's
// slots own, and their probs_grad, and nothing else; reads rows of the window only, and of those
// only what a slot names (prefetches aside, which never fault).
//
// The work is bound by memory, and memory is fast only when several rows are on their way at once.
// So slots are taken in groups; a group of long rows is worked on a block of bytes at a time, each
// slot in turn; and with every line, one is asked for that lies further on in the same row, or,
// towards the end of the row, at the start of the next group's rows. A row of the tokens' gradient
// serves all its slots out of the first-level cache.
#include <algorithm>

#include "core/fp_mode.h"
#include "cpu/dot-inl.h"
#include "cpu/row_kernels.h"
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

// The bytes [begin, end) of the slot's row, where there is no dot product.
template <class T, Store store>
HWY_INLINE void write_row(const Job& job, bool weighted, int64_t begin, int64_t end,
                          const AheadOfJob& ahead) {
  const auto weight = static_cast<Accumulator<T>>(narrow_nan(job.weight));
  weighted ? write_row<T, store, true>(job, weight, begin, end, ahead)
           : write_row<T, store, false>(job, weight, begin, end, ahead);
}

// The bytes [begin, end) of a job's rows.
template <class T, Store store>
HWY_NOINLINE void do_block(const Job& job, const AheadOfJob ahead, bool weighted, int64_t begin,
                           int64_t end, Dot<T>& dot) {
  const auto weight = static_cast<Accumulator<T>>(narrow_nan(job.weight));
  if (!job.row) return write_row<T, store>(job, weighted, begin, end, ahead);
  job.out ? dot.template add<store, true>(job, weight, begin, end, ahead)
          : dot.template add<store, false>(job, weight, begin, end, ahead);
}

// All of a job's rows, of whole stripes.
template <class T, Store store>
HWY_INLINE void do_rows(Job& job, const AheadOfJob& ahead, bool weighted, int64_t row_bytes) {
  const auto weight = static_cast<Accumulator<T>>(narrow_nan(job.weight));
  if (!job.row) return write_row<T, store>(job, weighted, 0, row_bytes, ahead);
  job.dot = job.out ? Dot<T>::template of_row<store, true>(job, weight, row_bytes, ahead)
                    : Dot<T>::template of_row<store, false>(job, weight, row_bytes, ahead);
}

// Jobs [begin, end) together; with their last bytes, the first ones of the jobs [end, next_end) are
// asked for.
struct JobGroup {
  Job* jobs;
  int64_t begin, end, next_end;
  bool weighted;
  int64_t row_bytes;
  int64_t far, count;  // the row of the job `far` further is asked for, too, if there are so many

  // What is asked for with job j: bytes of the job that is `step` further, shifted, or nothing new.
  HWY_INLINE AheadOfJob ahead_of(int64_t j, int64_t step, int64_t shift) const {
    const bool has_next = j + step < next_end;
    const Job& then = jobs[has_next ? j + step : j];
    const int64_t by = has_next ? shift : 0;
    const bool has_far = far > 0 && j + far < count;
    return {then.grad + by, (then.row ? then.row : then.grad) + by,
            has_far ? jobs[j + far].row : nullptr};
  }
};

// Long rows a block at a time, so that several of them are on their way.
template <class T, Store store>
void do_long_rows(const JobGroup& group) {
  Dot<T> dots[kMaxGradGroup];
  Job* const jobs = group.jobs;
  const int64_t begin = group.begin, end = group.end, row_bytes = group.row_bytes;
  for (int64_t j = begin; j < end; ++j) {
    if (jobs[j].row) dots[j - begin].clear();
  }
  const auto pass = [&](int64_t first, int64_t last, int64_t step, int64_t shift) HWY_ATTR {
    for (int64_t byte = first; byte < last; byte += kGradBlockBytes) {
      const int64_t block_end = std::min(byte + kGradBlockBytes, last);
      for (int64_t j = begin; j < end; ++j) {
        do_block<T, store>(jobs[j], group.ahead_of(j, step, shift), group.weighted, byte, block_end,
                           dots[j - begin]);
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
HWY_NOINLINE void do_group(const JobGroup& group) {
  if constexpr (Dot<T>::kTakesRows) {
    if (group.row_bytes <= kGradWholeRowBytes && group.row_bytes % kStripeBytes<T> == 0) {
      for (int64_t j = group.begin; j < group.end; ++j) {
        do_rows<T, store>(group.jobs[j], group.ahead_of(j, group.end - group.begin, 0),
                          group.weighted, group.row_bytes);
      }
      return;
    }
  }
  do_long_rows<T, store>(group);
}

// More jobs are found when a group and what is asked for far ahead are left.
static_assert(kMaxGradGroup + kMaxFarJobs <= kMaxJobs - kWordSlots);

// Jobs in groups, and how many of them were done: the last ones stay, unless they are the last of
// all, so that their lines are asked for before more jobs are found.
template <class T, Store store>
int64_t do_jobs(const UnpermuteWithEpGradProblem& p, Job* jobs, int64_t count, bool are_last) {
  const int64_t row_bytes = p.hidden_size * int64_t{sizeof(T)};
  const int64_t group = std::clamp(kGradGroupBytes / (row_bytes + 1), kGradStreams, kMaxGradGroup);
  const int64_t far = std::min(far_rows(p.num_rows(), row_bytes, kFarWindowBytes), kMaxFarJobs);
  int64_t begin = 0;
  for (; begin < count && (are_last || begin + group + far < count); begin += group) {
    const int64_t end = std::min(begin + group, count);
    do_group<T, store>(
        {jobs, begin, end, std::min(end + group, count), p.has_probs, row_bytes, far, count});
  }
  return std::min(begin, count);
}

inline void run_slots(const UnpermuteWithEpGradProblem& p, const UnpermuteWithEpGradPointers& at,
                      const RowOwners& owners, SlotChunks& chunks, bool streaming) {
  const FpMode mode;
  note_target(hwy::TargetName(HWY_TARGET));
  Job jobs[kMaxJobs];
  int64_t count = 0;
  SlotChunk rest;
  bool has_slots = chunks.next(rest);
  while (has_slots) {
    count = find_jobs(p, at, owners, rest, jobs, count);
    if (rest.first == rest.last) has_slots = chunks.next(rest);
    visit_float(p.tokens_dtype, [&](auto t) {
      using T = decltype(t);
      const auto run = streaming ? do_jobs<T, Store::kStreaming> : do_jobs<T, Store::kCached>;
      const int64_t done = run(p, jobs, count, !has_slots);
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
