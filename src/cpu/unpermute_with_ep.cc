// UnpermuteWithEp on the CPU: each token gathers its rows of the window, so no two threads write
// the same place and nothing of the slots' size is ever stored.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/unpermute_with_ep.cc"
// clang-format off: foreach_target comes first, and includes this file again for each target.
#include "hwy/foreach_target.h"
#include "cpu/unpermute_with_ep-inl.h"
// clang-format on

#if HWY_ONCE
#include "core/text.h"
#include "core/threads.h"
#include "cpu/check_indices.h"
#include "cpu/streaming.h"
#include "cpu/targets.h"

namespace moe::cpu {
namespace {

using Problem = UnpermuteWithEpProblem;
using Pointers = UnpermuteWithEpPointers;

HWY_EXPORT(run_unpermute);
HWY_EXPORT(unpermute_target_name);

Cut cut_of(const Problem& p) {
  const FpMode mode;  // the caller's may trap
  const int64_t row_bytes = p.hidden_size * dtype_bytes(p.tokens_dtype);
  const double rows_per_token =
      static_cast<double>(p.num_rows()) / static_cast<double>(std::max<int64_t>(1, p.num_tokens));
  const double rows = std::min(rows_per_token, static_cast<double>(p.top_k)) + 1;
  return Cut(p.num_tokens, row_bytes,
             rows * static_cast<double>(row_bytes) + static_cast<double>(p.top_k) * 8 + 1,
             p.num_threads);
}

std::string refuses(const Problem& p) {
  if (p.inner_stride != 1) return text("inner stride ", p.inner_stride, ", but takes 1 only");
  if (p.top_k > kMaxRows) return text("top_k ", p.top_k, ", but takes at most ", kMaxRows);
  return {};
}

}  // namespace

size_t workspace_bytes(const Problem& p) {
  return p.check_indices ? check_indices_bytes(p.num_slots()) : 0;
}

void run_in_chunks(const Problem& p, const Pointers& at, void* workspace,
                   RunUnpermuteChunk* run_chunk) {
  if (p.check_indices) {
    check_indices(p.index_dtype, at.sorted_indices, p.index_stride, p.num_slots(), workspace);
  }
  const int64_t element = dtype_bytes(p.tokens_dtype);
  const Cut cut = cut_of(p);
  const bool streaming =
      use_streaming(at.out, p.num_tokens * p.hidden_size * element, element, cut.num_workers());
  parallel_chunks(cut.num_chunks(), cut.num_workers(),
                  [&](int64_t i, int) { run_chunk(p, at, cut[i], streaming); });
}

void add_kernels(UnpermuteWithEpKernels& kernels) {
  for_each_target([&](size_t index) {
    kernels.push_back({HWY_DISPATCH_TABLE(unpermute_target_name)[index](), refuses, workspace_bytes,
                       HWY_DISPATCH_TABLE(run_unpermute)[index]});
  });
  kernels.push_back(portable_unpermute_with_ep());
}

}  // namespace moe::cpu
#endif  // HWY_ONCE
