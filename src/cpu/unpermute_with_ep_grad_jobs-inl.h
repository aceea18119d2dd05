// What there is to do for the slots of UnpermuteWithEpGrad; compiled once per instruction set.
#include <bit>
#include <cstring>
#include <type_traits>

#include "core/fp_mode.h"
#include "cpu/batch-inl.h"
#include "cpu/unpermute_with_ep_grad.h"

#if defined(MOE_CPU_UNPERMUTE_WITH_EP_GRAD_JOBS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOE_CPU_UNPERMUTE_WITH_EP_GRAD_JOBS_INL_H_
#undef MOE_CPU_UNPERMUTE_WITH_EP_GRAD_JOBS_INL_H_
#else
#define MOE_CPU_UNPERMUTE_WITH_EP_GRAD_JOBS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace moe::cpu {
namespace HWY_NAMESPACE {

// Slots that are looked at together: a bit for each fits a word.
constexpr int64_t kWordSlots = 64;

// Slots inside the window, with the types of their index and prob (or One) known.
template <class Index, class Prob>
class InsideSlots {
 public:
  HWY_INLINE InsideSlots(const UnpermuteWithEpGradProblem& p, const UnpermuteWithEpGradPointers& at)
      : source_{p.index_dtype, at.sorted_indices, p.index_stride, p.window, p.top_k},
        probs_(at.probs),
        token_stride_(p.probs_token_stride),
        stride_(p.probs_stride),
        inverse_(static_cast<uint64_t>(65536 / p.top_k + 1)) {}

  // Calls fn(slot, row, token, weight) for the slots [first, last) that are inside, at most
  // kWordSlots of all. The result is whether all are.
  template <class Fn>
  HWY_INLINE bool visit(int64_t first, int64_t last, Fn&& fn) const {
    uint64_t bits = bits_of_slots<Index>(source_, first, last - first);
    const bool all = std::popcount(bits) == last - first;
    const int64_t first_token = first / source_.top_k, first_k = first % source_.top_k;
    for (; bits; bits &= bits - 1) {
      const int64_t i = std::countr_zero(bits), slot = first + i;
      const int64_t row =
          load<Index>(source_.indices, slot * source_.index_stride) - source_.window.begin;
      const int64_t token = first_token + tokens_of(first_k + i);
      fn(slot, row, token, weight(token, slot - token * source_.top_k));
    }
    return all;
  }

 private:
  // slots / top_k, for fewer slots than a token's and a word's.
  HWY_INLINE int64_t tokens_of(int64_t slots) const {
    if (source_.top_k >= kWordSlots) return slots >= source_.top_k;
    return static_cast<int64_t>(static_cast<uint64_t>(slots) * inverse_ >> 16);
  }
  HWY_INLINE auto weight([[maybe_unused]] int64_t token, [[maybe_unused]] int64_t k) const {
    if constexpr (std::is_same_v<Prob, One>) {
      return 1.0f;
    } else {
      return widen(load<Prob>(probs_, token * token_stride_ + k * stride_));
    }
  }

  SlotSource source_;
  const void* probs_;
  int64_t token_stride_, stride_;
  uint64_t inverse_;
};

inline int64_t claim_slots(const UnpermuteWithEpGradProblem& p,
                           const UnpermuteWithEpGradPointers& at, RowOwners& owners,
                           const SlotChunk& chunk) {
  const FpMode mode;  // a comparison with 0 must see a subnormal prob
  int64_t claims = 0;
  visit_slots(p, [&](auto index, auto prob) {
    const InsideSlots<decltype(index), decltype(prob)> slots(p, at);
    for (int64_t first = chunk.first; first < chunk.last; first += kWordSlots) {
      slots.visit(first, std::min(first + kWordSlots, chunk.last),
                  [&](int64_t slot, int64_t row, int64_t, auto weight) {
                    if (weight == 0) return;
                    owners.claim(row, slot);
                    ++claims;
                  });
    }
  });
  return claims;
}

// The jobs of the slots [first, last), at most kWordSlots; their number is the result. Writes the
// probs_grad of slots outside the window.
template <class Index, class Prob>
HWY_INLINE int64_t find_jobs(const UnpermuteWithEpGradProblem& p,
                             const UnpermuteWithEpGradPointers& at, const RowOwners& owners,
                             int64_t first, int64_t last, Job* jobs) {
  const int64_t element = dtype_bytes(p.tokens_dtype);
  const int64_t token_step = p.token_stride * element, row_step = p.row_stride * element;
  const int64_t out_step = p.hidden_size * element;
  const auto* const grads = static_cast<const uint8_t*>(at.unpermuted_tokens_grad);
  const auto* const rows = static_cast<const uint8_t*>(at.permuted_tokens);
  auto* const outs = static_cast<uint8_t*>(at.permuted_tokens_grad);
  const bool with_dot = p.has_probs_grad;
  int64_t n = 0;
  const bool all = InsideSlots<Index, Prob>(p, at).visit(
      first, last, [&](int64_t slot, int64_t row, int64_t token, auto weight) {
        const bool owner = weight != 0 && owners.is(row, slot);
        jobs[n] = {grads + token * token_step,
                   with_dot ? rows + row * row_step : nullptr,
                   owner ? outs + row * out_step : nullptr,
                   weight,
                   slot,
                   0};
        n += owner || with_dot;
      });
  if (with_dot && !all) {
    const int64_t bytes = dtype_bytes(p.probs_dtype);
    std::memset(static_cast<char*>(at.probs_grad) + first * bytes, 0,
                static_cast<size_t>((last - first) * bytes));
  }
  return n;
}

// The jobs of the chunk's first slots, as many as there is room for behind the `count` that there
// are. Takes the slots out of the chunk; the result is the new count.
inline int64_t find_jobs(const UnpermuteWithEpGradProblem& p, const UnpermuteWithEpGradPointers& at,
                         const RowOwners& owners, SlotChunk& chunk, Job* jobs, int64_t count) {
  visit_slots(p, [&](auto index, auto prob) {
    while (chunk.first < chunk.last && count + kWordSlots <= kMaxJobs) {
      const int64_t last = std::min(chunk.first + kWordSlots, chunk.last);
      count += find_jobs<decltype(index), decltype(prob)>(p, at, owners, chunk.first, last,
                                                          jobs + count);
      chunk.first = last;
    }
  });
  return count;
}

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
