// PermuteWithEpGrad on the CPU: each token gathers its rows of the window, so no two threads write
// the same place and nothing of the slots' size is ever stored.
#include "cpu/permute_with_ep_grad.h"

#include <algorithm>

#include "core/dtypes.h"
#include "core/fp_mode.h"
#include "core/threads.h"
#include "cpu/check_indices.h"

namespace moe::cpu {
namespace {

using Problem = PermuteWithEpGradProblem;
using Pointers = PermuteWithEpGradPointers;

// Elements of a row that are summed at a time: accumulators that stay in the first-level cache.
constexpr int64_t kBlock = 1024;
// Bytes that a worker moves before it takes the next chunk: some 20 microseconds of work.
constexpr int64_t kChunkBytes = 256 << 10;

// A slot's row within the window, or a negative number.
template <class Index>
int64_t row_of(const Problem& p, const Index* indices, int64_t slot) {
  const int64_t global = indices[slot * p.index_stride];
  return global >= p.window.begin && global < p.window.end ? global - p.window.begin : -1;
}

template <class T, class Index>
void sum_block(const Problem& p, const T* rows, const Index* indices, int64_t first_slot,
               int64_t begin, int64_t count, T* out) {
  Accumulator<T> sum[kBlock];
  bool all_inside = true;
  for (int64_t k = 0; k < p.top_k; ++k) all_inside &= row_of(p, indices, first_slot + k) >= 0;
  // A slot outside contributes +0; without one the sum starts at -0, which changes nothing.
  std::fill_n(sum, count, all_inside ? Accumulator<T>(-0.0) : Accumulator<T>(0.0));
  for (int64_t k = 0; k < p.top_k; ++k) {
    const int64_t row = row_of(p, indices, first_slot + k);
    if (row < 0) continue;
    const T* source = rows + row * p.row_stride + begin * p.inner_stride;
    for (int64_t h = 0; h < count; ++h) sum[h] += widen(source[h * p.inner_stride]);
  }
  std::transform(sum, sum + count, out, [](Accumulator<T> x) { return narrow<T>(x); });
}

template <class T, class Index>
void sum_tokens(const Problem& p, const Pointers& at, const Index* indices, int64_t first,
                int64_t last) {
  const T* rows = static_cast<const T*>(at.permuted_tokens_grad);
  for (int64_t token = first; token < last; ++token) {
    T* out = static_cast<T*>(at.tokens_grad) + token * p.hidden_size;
    for (int64_t h = 0; h < p.hidden_size; h += kBlock) {
      const int64_t count = std::min(kBlock, p.hidden_size - h);
      sum_block(p, rows, indices, token * p.top_k, h, count, out + h);
    }
  }
}

template <class Bits, class Index>
void copy_probs(const Problem& p, const Pointers& at, const Index* indices, int64_t first,
                int64_t last) {
  const Bits* in = static_cast<const Bits*>(at.permuted_probs_grad);
  Bits* out = static_cast<Bits*>(at.probs_grad);
  for (int64_t slot = first * p.top_k; slot < last * p.top_k; ++slot) {
    const int64_t row = row_of(p, indices, slot);
    out[slot] = row < 0 ? Bits{0} : in[row * p.probs_stride];
  }
}

int64_t tokens_per_chunk(const Problem& p) {
  const double token_bytes = (static_cast<double>(p.top_k) + 1) *
                             static_cast<double>(p.hidden_size * dtype_bytes(p.tokens_dtype));
  return static_cast<int64_t>(std::clamp(kChunkBytes / (token_bytes + 1), 1.0, 1e6));
}

void run(const Problem& p, const Pointers& at, void* workspace) {
  if (p.check_indices) {
    check_indices(p.index_dtype, at.sorted_indices, p.index_stride, p.num_tokens * p.top_k,
                  workspace);
  }
  const int64_t step = tokens_per_chunk(p);
  const int64_t num_chunks = p.num_tokens / step + (p.num_tokens % step != 0);
  visit_index(p.index_dtype, [&](auto index) {
    const auto* indices = static_cast<const decltype(index)*>(at.sorted_indices);
    parallel_chunks(num_chunks, p.num_threads, [&](int64_t chunk, int) {
      const FpMode mode;
      const int64_t first = chunk * step, last = std::min(p.num_tokens, first + step);
      visit_float(p.tokens_dtype,
                  [&](auto t) { sum_tokens<decltype(t)>(p, at, indices, first, last); });
      if (!p.has_probs) return;
      visit_bytes(p.probs_dtype,
                  [&](auto bits) { copy_probs<decltype(bits)>(p, at, indices, first, last); });
    });
  });
}

size_t workspace_bytes(const Problem& p) {
  return p.check_indices ? check_indices_bytes(p.num_tokens * p.top_k) : 0;
}

std::string takes_everything(const Problem&) { return {}; }

}  // namespace

void add_kernels(PermuteWithEpGradKernels& kernels) {
  kernels.push_back({"portable", takes_everything, workspace_bytes, run});
}

}  // namespace moe::cpu
