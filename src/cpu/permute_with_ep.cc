// PermuteWithEp on the CPU: each token's row is read once and written to all its rows. No two slots
// have the same row, so no two threads write the same place.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/permute_with_ep.cc"
// clang-format off: foreach_target comes first, and includes this file again for each target.
#include "hwy/foreach_target.h"
#include "cpu/permute_with_ep-inl.h"
// clang-format on

#if HWY_ONCE
#include "core/fp_mode.h"
#include "core/threads.h"
#include "cpu/row_kernels.h"
#include "cpu/sort_by_expert.h"
#include "cpu/streaming.h"
#include "cpu/targets.h"

namespace moe::cpu {
namespace {

using Problem = PermuteWithEpProblem;
using Pointers = PermuteWithEpPointers;

HWY_EXPORT(run_permute);

Cut cut_of(const Problem& p) {
  return cut_rows({.num_tokens = p.sort.num_tokens,
                   .top_k = p.sort.top_k,
                   .window_rows = p.window_rows(),
                   .row_bytes = p.row_bytes(),
                   .has_probs = p.has_probs},
                  p.sort.num_threads);
}

std::string refuses(const Problem& p) { return refuses_rows(p.inner_stride, p.sort.top_k); }

void fill_zeros(void* data, int64_t begin, int64_t end) {
  if (begin < end)
    std::memset(static_cast<char*>(data) + begin, 0, static_cast<size_t>(end - begin));
}

// The rows of permuted_tokens behind the window's.
void fill_padding(const Problem& p, const Pointers& at) {
  const int64_t begin = p.window_rows() * p.row_bytes(), end = p.num_rows * p.row_bytes();
  const int64_t num_chunks = (end - begin + kChunkBytes - 1) / kChunkBytes;
  parallel_chunks(num_chunks, p.sort.num_threads, [&](int64_t i, int) {
    const int64_t first = begin + i * kChunkBytes;
    fill_zeros(at.permuted_tokens, first, std::min(first + kChunkBytes, end));
  });
}

}  // namespace

size_t workspace_bytes(const Problem& p) { return workspace_bytes(p.sort); }

void run_in_chunks(const Problem& p, const Pointers& at, void* workspace,
                   PermuteChunks* run_chunks) {
  sort_by_expert(p.sort, {at.indices, at.sorted_indices, at.tokens_per_expert}, workspace);
  if (p.has_probs) {
    const int64_t bytes = dtype_bytes(p.probs_dtype);
    fill_zeros(at.permuted_probs, p.window_rows() * bytes, p.num_probs_rows * bytes);
  }
  fill_padding(p, at);
  if (p.window_rows() == 0) return;
  const Cut cut = cut_of(p);
  // Bytes are copied, so no address is in the way of streaming stores.
  const bool streaming = use_streaming_of_rows(at.permuted_tokens, p.window_rows() * p.row_bytes(),
                                               1, cut.num_workers());
  parallel_cut(cut, [&](Chunks& chunks) { run_chunks(p, at, chunks, streaming); });
}

void add_kernels(PermuteWithEpKernels& kernels) {
  for_each_target([&](const Target& target) {
    kernels.push_back({target.name, refuses, workspace_bytes,
                       bound_to<Problem, Pointers>(HWY_DISPATCH_TABLE(run_permute)[target.index])});
  });
  kernels.push_back(portable_permute_with_ep());
}

}  // namespace moe::cpu
#endif  // HWY_ONCE
