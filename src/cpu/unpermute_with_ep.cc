// UnpermuteWithEp on the CPU: each token gathers its rows of the window, so no two threads write
// the same place and nothing of the slots' size is ever stored.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/unpermute_with_ep.cc"
// clang-format off: foreach_target comes first, and includes this file again for each target.
#include "hwy/foreach_target.h"
#include "cpu/unpermute_with_ep-inl.h"
// clang-format on

#if HWY_ONCE
#include "core/threads.h"
#include "cpu/check_indices.h"
#include "cpu/row_kernels.h"
#include "cpu/streaming.h"
#include "cpu/targets.h"

namespace moe::cpu {
namespace {

using Problem = UnpermuteWithEpProblem;
using Pointers = UnpermuteWithEpPointers;

HWY_EXPORT(run_unpermute);

Cut cut_of(const Problem& p) {
  return cut_rows({.num_tokens = p.num_tokens,
                   .top_k = p.top_k,
                   .window_rows = p.num_rows(),
                   .row_bytes = p.hidden_size * dtype_bytes(p.tokens_dtype),
                   .has_probs = p.has_probs},
                  p.num_threads);
}

std::string refuses(const Problem& p) { return refuses_rows(p.inner_stride, p.top_k); }

}  // namespace

size_t workspace_bytes(const Problem& p) {
  return p.check_indices ? check_indices_bytes(p.num_slots()) : 0;
}

void run_in_chunks(const Problem& p, const Pointers& at, void* workspace,
                   RunUnpermuteChunks* run_chunks) {
  hwy::Prefetch(at.sorted_indices);  // on its way while the code is found that reads it
  if (p.check_indices) {
    check_indices(p.index_dtype, at.sorted_indices, p.index_stride, p.num_slots(), workspace);
  }
  const int64_t element = dtype_bytes(p.tokens_dtype);
  const Cut cut = cut_of(p);
  const bool streaming =
      use_streaming(at.out, p.num_tokens * p.hidden_size * element, element, cut.num_workers());
  parallel_cut(cut, [&](Chunks& chunks) { run_chunks(p, at, chunks, streaming); });
}

void add_kernels(UnpermuteWithEpKernels& kernels) {
  for_each_target([&](const char* name, size_t index) {
    kernels.push_back({name, refuses, workspace_bytes, HWY_DISPATCH_TABLE(run_unpermute)[index]});
  });
  kernels.push_back(portable_unpermute_with_ep());
}

}  // namespace moe::cpu
#endif  // HWY_ONCE
