// How the portable kernels of PermuteWithEpGrad and UnpermuteWithEp run: in the same chunks as the
// others (gather.h), in plain C++.
#pragma once

#include "core/dtypes.h"
#include "core/fp_mode.h"
#include "cpu/check_indices.h"
#include "cpu/cut.h"
#include "cpu/last_target.h"
#include "cpu/row_kernels.h"

namespace moe::cpu {

// Checks the indices if that is asked for, and calls run_chunk(p, at, chunk) for each chunk.
template <class Problem, class Pointers, class RunChunk>
void run_portable(const Problem& p, const Pointers& at, void* workspace, RunChunk run_chunk) {
  if (p.check_indices) {
    check_indices(p.index_dtype, at.sorted_indices, p.index_stride, p.num_tokens * p.top_k,
                  workspace);
  }
  const Cut cut = cut_rows({.num_tokens = p.num_tokens,
                            .top_k = p.top_k,
                            .window_rows = p.window.end - p.window.begin,
                            .row_bytes = p.hidden_size * dtype_bytes(p.tokens_dtype),
                            .has_probs = p.has_probs},
                           p.num_threads);
  parallel_cut(cut, [&](Chunks& chunks) {
    const FpMode mode;
    note_target("portable");
    for (Chunk chunk; chunks.next(chunk);) run_chunk(p, at, chunk);
  });
}

}  // namespace moe::cpu
