// UnpermuteWithEp in plain C++, for what the other kernels do not take.
#include <algorithm>

#include "core/dtypes.h"
#include "cpu/portable_gather.h"
#include "cpu/unpermute_with_ep.h"
#include "cpu/weighted_slots.h"

namespace moe::cpu {
namespace {

using Problem = UnpermuteWithEpProblem;
using Pointers = UnpermuteWithEpPointers;

// Elements of a row that are summed at a time: accumulators that stay in the first-level cache.
constexpr int64_t kBlock = 1024;

// out[h] = the weighted sum of the token's rows at element begin + h, for h in [0, count).
template <class T, class Index, class Prob>
void sum_block(const Problem& p, const Pointers& at, int64_t token, int64_t begin, int64_t count,
               T* out) {
  Accumulator<T> sum[kBlock];
  const WeightedSlots<Index, Prob> slots(p, at.sorted_indices, at.probs, token * p.top_k);
  auto slot = slots;
  bool all_count = true;
  for (int64_t k = 0; k < p.top_k; ++k) all_count &= slot.next().counts;
  // A slot that does not count contributes +0; without one the sum starts at -0, which changes
  // nothing.
  std::fill_n(sum, count, all_count ? Accumulator<T>(-0.0) : Accumulator<T>(0.0));
  slot = slots;
  for (int64_t k = 0; k < p.top_k; ++k) {
    const auto [row, inside, counts, weight] = slot.next();
    if (!counts) continue;
    const int64_t first = row * p.row_stride + begin * p.inner_stride;
    for (int64_t h = 0; h < count; ++h) {
      sum[h] += widen(load<T>(at.permuted_tokens, first + h * p.inner_stride)) * weight;
    }
  }
  std::transform(sum, sum + count, out, [](Accumulator<T> x) { return narrow<T>(x); });
}

template <class T, class Index, class Prob>
void sum_tokens(const Problem& p, const Pointers& at, const Chunk& chunk) {
  constexpr int64_t kBytes = sizeof(T);
  T block[kBlock];
  for (int64_t token = chunk.first_token; token < chunk.last_token; ++token) {
    for (int64_t h = chunk.first_byte / kBytes; h < chunk.last_byte / kBytes; h += kBlock) {
      const int64_t count = std::min(kBlock, chunk.last_byte / kBytes - h);
      sum_block<T, Index, Prob>(p, at, token, h, count, block);
      std::memcpy(static_cast<char*>(at.out) + (token * p.hidden_size + h) * kBytes, block,
                  static_cast<size_t>(count * kBytes));
    }
  }
}

void run_chunk(const Problem& p, const Pointers& at, const Chunk& chunk) {
  visit_slots_and_tokens(p, [&](auto t, auto index, auto prob) {
    sum_tokens<decltype(t), decltype(index), decltype(prob)>(p, at, chunk);
  });
}

void run(const Problem& p, const Pointers& at, void* workspace) {
  run_portable(p, at, workspace, run_chunk);
}

std::string takes_everything(const Problem&) { return {}; }

}  // namespace

UnpermuteWithEpKernels::value_type portable_unpermute_with_ep() {
  return {"portable", takes_everything, workspace_bytes, bound_to<Problem, Pointers>(run)};
}

}  // namespace moe::cpu
