// PermuteWithEpGrad on the CPU: each token gathers its rows of the window, so no two threads write
// the same place and nothing of the slots' size is ever stored.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/permute_with_ep_grad.cc"
#include "hwy/foreach_target.h"
// (after foreach_target)
#include "cpu/permute_with_ep_grad-inl.h"

#if HWY_ONCE
#include "core/text.h"
#include "core/threads.h"
#include "cpu/check_indices.h"
#include "cpu/targets.h"

namespace moe::cpu {
namespace {

using Problem = PermuteWithEpGradProblem;
using Pointers = PermuteWithEpGradPointers;

HWY_EXPORT(run);
HWY_EXPORT(target_name);

// How the work is cut: a grid of token ranges and, where there are few tokens, parts of rows.
struct Cut {
  int64_t tokens_per_chunk, token_chunks;
  int64_t bytes_per_part, parts;
  int workers;
  int64_t row_bytes, num_tokens;

  explicit Cut(const Problem& p)
      : row_bytes(p.hidden_size * dtype_bytes(p.tokens_dtype)), num_tokens(p.num_tokens) {
    const double rows = static_cast<double>(p.window.end - p.window.begin) /
                        static_cast<double>(std::max<int64_t>(1, num_tokens));
    const double token_bytes = (std::min(rows, static_cast<double>(p.top_k)) + 1) *
                               static_cast<double>(std::max<int64_t>(1, row_bytes));
    const double bytes = token_bytes * static_cast<double>(num_tokens);
    workers = static_cast<int>(std::clamp(bytes / kWorkerBytes, 1.0, p.num_threads * 1.0));
    // Four chunks a worker at least, so that a slow one leaves its share to the others.
    const double chunk_bytes =
        std::min<double>(kChunkBytes, bytes / (workers > 1 ? workers * kChunksPerWorker : 1));
    tokens_per_chunk = static_cast<int64_t>(std::clamp(chunk_bytes / token_bytes, 1.0, 1e9));
    token_chunks = num_tokens / tokens_per_chunk + (num_tokens % tokens_per_chunk != 0);
    const int64_t wanted_parts =
        workers > 1 ? std::max<int64_t>(1, workers * 2 / std::max<int64_t>(1, token_chunks)) : 1;
    bytes_per_part = std::max<int64_t>(4096, (row_bytes / wanted_parts + 511) / 512 * 512);
    parts = std::max<int64_t>(1, row_bytes / bytes_per_part);
  }
  int64_t num_chunks() const { return token_chunks * parts; }
  Chunk operator[](int64_t chunk) const {
    const int64_t token = chunk / parts * tokens_per_chunk, part = chunk % parts;
    return {token, std::min(num_tokens, token + tokens_per_chunk), part * bytes_per_part,
            part == parts - 1 ? row_bytes : (part + 1) * bytes_per_part};
  }
};

bool use_streaming(const Problem& p, const Pointers& at, int64_t row_bytes) {
  const uintptr_t element = static_cast<uintptr_t>(dtype_bytes(p.tokens_dtype));
  return p.num_tokens * row_bytes >= kStreamBytes &&
         reinterpret_cast<uintptr_t>(at.tokens_grad) % element == 0;
}

std::string refuses(const Problem& p) {
  if (p.inner_stride != 1) return text("inner stride ", p.inner_stride, ", but takes 1 only");
  if (p.top_k > kMaxRows) return text("top_k ", p.top_k, ", but takes at most ", kMaxRows);
  return {};
}

template <class Index, class Bits>
void copy_probs(const Problem& p, const Pointers& at, const Chunk& chunk) {
  for (int64_t token = chunk.first_token; token < chunk.last_token; ++token) {
    const Slots<Index> slots(p, at, token);
    for (int64_t k = 0; k < p.top_k; ++k) {
      const int64_t row = slots.row(k);
      const Bits prob =
          row < 0 ? Bits{0} : load<Bits>(at.permuted_probs_grad, row * p.probs_stride);
      store(at.probs_grad, token * p.top_k + k, prob);
    }
  }
}

void copy_probs(const Problem& p, const Pointers& at, const Chunk& chunk) {
  visit_index(p.index_dtype, [&](auto index) {
    visit_bytes(p.probs_dtype,
                [&](auto bits) { copy_probs<decltype(index), decltype(bits)>(p, at, chunk); });
  });
}

}  // namespace

size_t workspace_bytes(const Problem& p) {
  return p.check_indices ? check_indices_bytes(p.num_tokens * p.top_k) : 0;
}

void run_in_chunks(const Problem& p, const Pointers& at, void* workspace, RunChunk* run_chunk) {
  if (p.check_indices) {
    check_indices(p.index_dtype, at.sorted_indices, p.index_stride, p.num_tokens * p.top_k,
                  workspace);
  }
  // Also the cutting computes in floating point, where the caller's mode may trap.
  const Cut cut = [&] {
    const FpMode mode;
    return Cut(p);
  }();
  const bool streaming = use_streaming(p, at, cut.row_bytes);
  parallel_chunks(cut.num_chunks(), cut.workers, [&](int64_t i, int) {
    const Chunk chunk = cut[i];
    run_chunk(p, at, chunk, streaming);
    if (p.has_probs && chunk.first_byte == 0) copy_probs(p, at, chunk);
  });
}

void add_kernels(PermuteWithEpGradKernels& kernels) {
  for_each_target([&](size_t index) {
    kernels.push_back({HWY_DISPATCH_TABLE(target_name)[index](), refuses, workspace_bytes,
                       HWY_DISPATCH_TABLE(run)[index]});
  });
  kernels.push_back(portable_permute_with_ep_grad());
}

}  // namespace moe::cpu
#endif  // HWY_ONCE
