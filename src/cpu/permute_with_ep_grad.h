// The CPU kernels of PermuteWithEpGrad: one per instruction set that the machine has, and a
// portable one; and what they share.
#pragma once

#include <atomic>

#include "core/dtypes.h"
#include "cpu/cut.h"
#include "ops/permute_with_ep_grad.h"

namespace moe::cpu {

// Adds what this machine can run, fastest first.
void add_kernels(PermuteWithEpGradKernels& kernels);

// Takes everything, in plain C++.
PermuteWithEpGradKernels::value_type portable_permute_with_ep_grad();

size_t workspace_bytes(const PermuteWithEpGradProblem& problem);

// Writes the tokens_grad of a chunk. `streaming`: stores that pass the caches by pay off.
using RunChunk = void(const PermuteWithEpGradProblem&, const PermuteWithEpGradPointers&,
                      const Chunk&, bool streaming);

// The instruction set of the kernel that wrote a chunk last, "portable" or Highway's name: for the
// test that proves that a forced kernel ran, and nothing else.
extern std::atomic<const char*> last_target;

// The whole operator: checks the indices if that is asked for, cuts the work into chunks, hands
// them to threads, and copies the probs.
void run_in_chunks(const PermuteWithEpGradProblem& problem, const PermuteWithEpGradPointers& at,
                   void* workspace, RunChunk* run_chunk);

// The row of the window that a global row is, or a negative number outside.
inline int64_t row_in_window(const EpRange& window, int64_t global) {
  return global >= window.begin && global < window.end ? global - window.begin : -1;
}

// The slots of one token.
template <class Index>
class Slots {
 public:
  Slots(const PermuteWithEpGradProblem& p, const PermuteWithEpGradPointers& at, int64_t token)
      : p_(p), indices_(at.sorted_indices), first_(token * p.top_k) {}

  int64_t row(int64_t k) const {
    return row_in_window(p_.window, load<Index>(indices_, (first_ + k) * p_.index_stride));
  }
  bool all_inside() const {
    for (int64_t k = 0; k < p_.top_k; ++k) {
      if (row(k) < 0) return false;
    }
    return true;
  }

 private:
  const PermuteWithEpGradProblem& p_;
  const void* indices_;
  int64_t first_;
};

}  // namespace moe::cpu
