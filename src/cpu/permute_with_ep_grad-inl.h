// The kernel text of PermuteWithEpGrad, compiled once per instruction set.
//
// Contract: takes any problem with inner stride 1 and at most kMaxRows experts per token; writes
// every element of its part of the outputs and nothing else; reads rows of the window only, and of
// those only what a slot names (prefetches aside, which never fault).
#include "core/fp_mode.h"
#include "cpu/gather-inl.h"
#include "cpu/permute_with_ep_grad.h"

#if defined(MOE_CPU_PERMUTE_WITH_EP_GRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MOE_CPU_PERMUTE_WITH_EP_GRAD_INL_H_
#undef MOE_CPU_PERMUTE_WITH_EP_GRAD_INL_H_
#else
#define MOE_CPU_PERMUTE_WITH_EP_GRAD_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace moe::cpu {
namespace HWY_NAMESPACE {

// The tokens and the bytes of their rows that a chunk names, and what Tokens takes of `more`.
inline void run_chunk(const PermuteWithEpGradProblem& p, const PermuteWithEpGradPointers& at,
                      const Chunk& chunk, Chunks& more, bool streaming) {
  const int64_t element = dtype_bytes(p.tokens_dtype);
  const int64_t num_rows = p.window.end - p.window.begin;
  const bool with_probs = p.has_probs && chunk.first_byte == 0;
  const Gather g{
      .slots = {p.index_dtype, at.sorted_indices, p.index_stride, p.window, p.top_k},
      .tokens = {chunk, more},
      .input = static_cast<const uint8_t*>(at.permuted_tokens_grad) + chunk.first_byte,
      .input_step = p.row_stride * element,
      .row_bytes = chunk.last_byte - chunk.first_byte,
      .rows_per_token = rows_per_token(num_rows, p.num_tokens),
      .far_rows = far_rows_of_sums(num_rows, p.num_tokens, p.hidden_size * element),
      .out = static_cast<uint8_t*>(at.tokens_grad) + chunk.first_byte,
      .out_step = p.hidden_size * element,
      .probs_dtype = p.probs_dtype,
      .probs = at.permuted_probs_grad,
      .probs_stride = p.probs_stride,
      .probs_out = with_probs ? at.probs_grad : nullptr,
  };
  visit_float(p.tokens_dtype, [&](auto t) { gather<decltype(t), NoWeight>(g, streaming); });
}

inline void run_chunks(const PermuteWithEpGradProblem& p, const PermuteWithEpGradPointers& at,
                       Chunks& chunks, bool streaming) {
  const FpMode mode;
  note_target(hwy::TargetName(HWY_TARGET));
  for (Chunk chunk; chunks.next(chunk);) run_chunk(p, at, chunk, chunks, streaming);
}

inline void run(const PermuteWithEpGradProblem& p, const PermuteWithEpGradPointers& at,
                void* workspace) {
  run_in_chunks(p, at, workspace, run_chunks);
}

}  // namespace HWY_NAMESPACE
}  // namespace moe::cpu
HWY_AFTER_NAMESPACE();

#endif
