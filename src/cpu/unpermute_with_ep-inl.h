// The kernel text of UnpermuteWithEp, compiled once per instruction set.
//
// Contract: takes any problem with inner stride 1 and at most kMaxRows experts per token; writes
// every element of its part of the output and nothing else; reads rows of the window only, and of
// those only what a slot names whose prob is not 0 (prefetches aside, which never fault).
#include "core/fp_mode.h"
#include "cpu/gather-inl.h"
#include "cpu/unpermute_with_ep.h"

#if defined(MOE_CPU_UNPERMUTE_WITH_EP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOE_CPU_UNPERMUTE_WITH_EP_INL_H_
#undef MOE_CPU_UNPERMUTE_WITH_EP_INL_H_
#else
#define MOE_CPU_UNPERMUTE_WITH_EP_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace moe::cpu {
namespace HWY_NAMESPACE {

// The tokens and the bytes of their rows that a chunk names, and what Tokens takes of `more`.
inline void run_unpermute_chunk(const UnpermuteWithEpProblem& p, const UnpermuteWithEpPointers& at,
                                const Chunk& chunk, Chunks& more, bool streaming) {
  const int64_t element = dtype_bytes(p.tokens_dtype);
  const Gather g{
      .slots = {p.index_dtype,
                at.sorted_indices,
                p.index_stride,
                p.window,
                p.top_k,
                {p.probs_dtype, at.probs, p.probs_token_stride, p.probs_stride}},
      .tokens = {chunk, more},
      .input = static_cast<const uint8_t*>(at.permuted_tokens) + chunk.first_byte,
      .input_step = p.row_stride * element,
      .row_bytes = chunk.last_byte - chunk.first_byte,
      .rows_per_token = rows_per_token(p.num_rows(), p.num_tokens),
      .far_rows = far_rows_of_sums(p.num_rows(), p.num_tokens, p.hidden_size * element),
      .out = static_cast<uint8_t*>(at.out) + chunk.first_byte,
      .out_step = p.hidden_size * element,
  };
  visit_float(p.tokens_dtype, [&](auto t) {
    using T = decltype(t);
    p.has_probs ? gather<T, Accumulator<T>>(g, streaming) : gather<T, NoWeight>(g, streaming);
  });
}

inline void run_unpermute_chunks(const UnpermuteWithEpProblem& p, const UnpermuteWithEpPointers& at,
                                 Chunks& chunks, bool streaming) {
  const FpMode mode;
  note_target(hwy::TargetName(HWY_TARGET));
  for (Chunk chunk; chunks.next(chunk);) run_unpermute_chunk(p, at, chunk, chunks, streaming);
}

inline void run_unpermute(const UnpermuteWithEpProblem& p, const UnpermuteWithEpPointers& at,
                          void* workspace) {
  run_in_chunks(p, at, workspace, run_unpermute_chunks);
}

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
