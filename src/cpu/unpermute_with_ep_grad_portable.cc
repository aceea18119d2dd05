// UnpermuteWithEpGrad in plain C++, for what the other kernels do not take.
#include "core/dtypes.h"
#include "core/fp_mode.h"
#include "cpu/unpermute_with_ep_grad.h"

namespace moe::cpu {
namespace {

using Problem = UnpermuteWithEpGradProblem;
using Pointers = UnpermuteWithEpGradPointers;

// permuted_tokens_grad[row] = the token's gradient times the weight.
template <class T>
void write_row(const Problem& p, const Pointers& at, int64_t token, int64_t row,
               Accumulator<T> weight) {
  for (int64_t h = 0; h < p.hidden_size; ++h) {
    const T grad =
        load<T>(at.unpermuted_tokens_grad, token * p.token_stride + h * p.token_inner_stride);
    store(at.permuted_tokens_grad, row * p.hidden_size + h, narrow<T>(widen(grad) * weight));
  }
}

template <class T>
Accumulator<T> dot(const Problem& p, const Pointers& at, int64_t token, int64_t row) {
  Accumulator<T> partial[64] = {};
  for (int64_t h = 0; h < p.hidden_size; ++h) {
    const T grad =
        load<T>(at.unpermuted_tokens_grad, token * p.token_stride + h * p.token_inner_stride);
    const T value = load<T>(at.permuted_tokens, row * p.row_stride + h * p.row_inner_stride);
    partial[h % 64] += widen(value) * widen(grad);
  }
  for (int half = 32; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) partial[i] += partial[i + half];
  }
  return partial[0];
}

template <class T, class Index, class Prob>
void run_slots(const Problem& p, const Pointers& at, const RowOwners& owners,
               const SlotChunk& chunk) {
  WeightedSlots<Index, Prob> slots(p, at.sorted_indices, at.probs, chunk.first);
  for (int64_t slot = chunk.first; slot < chunk.last; ++slot) {
    const auto [row, inside, counts, weight] = slots.next();
    const int64_t token = slot / p.top_k;
    if (counts && owners.is(row, slot)) write_row<T>(p, at, token, row, weight);
    if constexpr (!std::is_same_v<Prob, One>) {
      if (!p.has_probs_grad) continue;
      store(at.probs_grad, slot,
            inside ? narrow<Prob>(dot<T>(p, at, token, row)) : narrow<Prob>(0));
    }
  }
}

int64_t claim_slots(const Problem& p, const Pointers& at, RowOwners& owners,
                    const SlotChunk& chunk) {
  const FpMode mode;  // a comparison with 0 must see a subnormal prob
  int64_t claims = 0;
  visit_slots(p, [&](auto index, auto prob) {
    WeightedSlots<decltype(index), decltype(prob)> slots(p, at.sorted_indices, at.probs,
                                                         chunk.first);
    for (int64_t slot = chunk.first; slot < chunk.last; ++slot) {
      const auto found = slots.next();
      if (!found.counts) continue;
      owners.claim(found.row, slot);
      ++claims;
    }
  });
  return claims;
}

void run_chunks(const Problem& p, const Pointers& at, const RowOwners& owners, SlotChunks& chunks,
                bool /*streaming*/) {
  const FpMode mode;
  note_target("portable");
  visit_slots_and_tokens(p, [&](auto t, auto index, auto prob) {
    for (SlotChunk chunk; chunks.next(chunk);) {
      run_slots<decltype(t), decltype(index), decltype(prob)>(p, at, owners, chunk);
    }
  });
}

void run(const Problem& p, const Pointers& at, void* workspace) {
  run_in_chunks(p, at, workspace, claim_slots, run_chunks);
}

std::string takes_everything(const Problem&) { return {}; }

}  // namespace

UnpermuteWithEpGradKernels::value_type portable_unpermute_with_ep_grad() {
  return {"portable", takes_everything, workspace_bytes, bound_to<Problem, Pointers>(run)};
}

}  // namespace moe::cpu
