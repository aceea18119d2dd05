// PermuteWithEpGrad in plain C++, for what the other kernels do not take.
#include <algorithm>
#include <cstring>

#include "core/dtypes.h"
#include "cpu/permute_with_ep_grad.h"
#include "cpu/portable_gather.h"
#include "cpu/slots.h"

namespace moe::cpu {
namespace {

using Problem = PermuteWithEpGradProblem;
using Pointers = PermuteWithEpGradPointers;

// The slots from `first_slot` on.
template <class Index>
Slots<Index> slots_of(const Problem& p, const Pointers& at, int64_t first_slot) {
  return Slots<Index>(at.sorted_indices, p.index_stride, p.window, first_slot);
}

// Elements of a row that are summed at a time: accumulators that stay in the first-level cache.
constexpr int64_t kBlock = 1024;

// out[h] = the sum of the token's rows at element begin + h, for h in [0, count).
template <class T, class Index>
void sum_block(const Problem& p, const Pointers& at, int64_t token, int64_t begin, int64_t count,
               T* out) {
  Accumulator<T> sum[kBlock];
  const auto slots = slots_of<Index>(p, at, token * p.top_k);
  auto slot = slots;
  bool all_inside = true;
  for (int64_t k = 0; k < p.top_k; ++k) all_inside &= slot.next().inside;
  // A slot outside contributes +0; without one the sum starts at -0, which changes nothing.
  std::fill_n(sum, count, all_inside ? Accumulator<T>(-0.0) : Accumulator<T>(0.0));
  slot = slots;
  for (int64_t k = 0; k < p.top_k; ++k) {
    const auto [row, inside] = slot.next();
    if (!inside) continue;
    const int64_t first = row * p.row_stride + begin * p.inner_stride;
    for (int64_t h = 0; h < count; ++h) {
      sum[h] += widen(load<T>(at.permuted_tokens_grad, first + h * p.inner_stride));
    }
  }
  std::transform(sum, sum + count, out, [](Accumulator<T> x) { return narrow<T>(x); });
}

template <class T, class Index>
void sum_tokens(const Problem& p, const Pointers& at, const Chunk& chunk) {
  constexpr int64_t kBytes = sizeof(T);
  T block[kBlock];
  for (int64_t token = chunk.first_token; token < chunk.last_token; ++token) {
    for (int64_t h = chunk.first_byte / kBytes; h < chunk.last_byte / kBytes; h += kBlock) {
      const int64_t count = std::min(kBlock, chunk.last_byte / kBytes - h);
      sum_block<T, Index>(p, at, token, h, count, block);
      std::memcpy(static_cast<char*>(at.tokens_grad) + (token * p.hidden_size + h) * kBytes, block,
                  static_cast<size_t>(count * kBytes));
    }
  }
}

template <class Index, class Bits>
void copy_probs(const Problem& p, const Pointers& at, const Chunk& chunk) {
  const int64_t first = chunk.first_token * p.top_k, last = chunk.last_token * p.top_k;
  if (p.window.begin == p.window.end) {  // not even row 0 may be read
    std::memset(static_cast<char*>(at.probs_grad) + first * int64_t{sizeof(Bits)}, 0,
                static_cast<size_t>(last - first) * sizeof(Bits));
    return;
  }
  auto slots = slots_of<Index>(p, at, first);
  for (int64_t slot = first; slot < last; ++slot) {
    const auto [row, inside] = slots.next();
    const Bits prob = load<Bits>(at.permuted_probs_grad, row * p.probs_stride);
    store(at.probs_grad, slot, static_cast<Bits>(prob & (Bits{0} - Bits{inside})));
  }
}

// Writes the probs_grad of a chunk, if there are probs and the chunk has the start of the rows.
void copy_probs(const Problem& p, const Pointers& at, const Chunk& chunk) {
  if (!p.has_probs || chunk.first_byte != 0) return;
  visit_index(p.index_dtype, [&](auto index) {
    visit_bytes(p.probs_dtype,
                [&](auto bits) { copy_probs<decltype(index), decltype(bits)>(p, at, chunk); });
  });
}

void run_chunk(const Problem& p, const Pointers& at, const Chunk& chunk) {
  visit_index(p.index_dtype, [&](auto index) {
    visit_float(p.tokens_dtype,
                [&](auto t) { sum_tokens<decltype(t), decltype(index)>(p, at, chunk); });
  });
  copy_probs(p, at, chunk);
}

void run(const Problem& p, const Pointers& at, void* workspace) {
  run_portable(p, at, workspace, run_chunk);
}

std::string takes_everything(const Problem&) { return {}; }

}  // namespace

PermuteWithEpGradKernels::value_type portable_permute_with_ep_grad() {
  return {"portable", takes_everything, workspace_bytes, bound_to<Problem, Pointers>(run)};
}

}  // namespace moe::cpu
