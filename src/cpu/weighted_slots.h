// Where slots lead and what they weigh, one after another.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cpu/slots.h"
#include "ops/unpermute.h"

namespace moe::cpu {

// The prob of every slot where there are none.
struct One {};

// Reads sorted_indices and probs (of the C++ type Prob, or One) from `first_slot` on.
template <class Index, class Prob>
class WeightedSlots {
 public:
  using Weight = Accumulator<Prob>;

  WeightedSlots(const UnpermuteProblem& p, const void* indices, const void* probs,
                int64_t first_slot)
      : slots_(indices, p.index_stride, p.window, first_slot),
        top_k_(p.top_k),
        token_step_(p.probs_token_stride),
        step_(p.probs_stride),
        probs_(probs),
        token_(first_slot / p.top_k),
        k_(first_slot % p.top_k) {}

  struct Slot {
    int64_t row;  // of the window, 0 where the slot is outside
    bool inside;  // the window
    bool counts;  // inside, and of a prob that is not 0
    Weight weight;
  };
  Slot next() {
    const auto [row, inside] = slots_.next();
    const Weight weight = next_weight();
    return {row, inside, inside && weight != 0, weight};
  }

 private:
  Weight next_weight() {
    if constexpr (std::is_same_v<Prob, One>) {
      return 1;
    } else {
      const Prob prob = load<Prob>(probs_, token_ * token_step_ + k_ * step_);
      if (++k_ == top_k_) k_ = 0, ++token_;
      return widen(prob);
    }
  }

  Slots<Index> slots_;
  int64_t top_k_, token_step_, step_;
  const void* probs_;
  int64_t token_, k_;
};

// Calls fn with a value of the index type and one of the probs' type, or One.
template <class Fn>
void visit_slots(const UnpermuteProblem& p, Fn&& fn) {
  visit_index(p.index_dtype, [&](auto index) {
    if (!p.has_probs) return fn(index, One{});
    visit_float(p.probs_dtype, [&](auto prob) { fn(index, prob); });
  });
}

// The same with a value of the tokens' type first: float64 has float64 probs only.
template <class Fn>
void visit_slots_and_tokens(const UnpermuteProblem& p, Fn&& fn) {
  visit_slots(p, [&](auto index, auto prob) {
    visit_float(p.tokens_dtype, [&](auto token) {
      using T = decltype(token);
      using P = decltype(prob);
      constexpr bool kGoTogether =
          std::is_same_v<P, One> || std::is_same_v<T, double> == std::is_same_v<P, double>;
      if constexpr (kGoTogether) fn(token, index, prob);
    });
  });
}

}  // namespace moe::cpu
