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

// Where slots lead, one after another. Routing is random, so nothing here branches on it.
template <class Index>
class Slots {
 public:
  Slots(const PermuteWithEpGradProblem& p, const PermuteWithEpGradPointers& at, int64_t first_slot)
      : next_(static_cast<const char*>(at.sorted_indices) + first_slot * bytes_of(p)),
        step_(bytes_of(p)),
        begin_(static_cast<uint64_t>(p.window.begin)),
        num_rows_(static_cast<uint64_t>(p.window.end - p.window.begin)) {}

  // A slot's row of the window: `inside` or not, then row 0.
  struct Row {
    int64_t row;
    bool inside;
  };
  Row next() {
    const uint64_t row = static_cast<uint64_t>(load<Index>(next_, 0)) - begin_;
    next_ += step_;
    const bool inside = row < num_rows_;
    return {static_cast<int64_t>(row & (uint64_t{0} - inside)), inside};
  }

 private:
  static int64_t bytes_of(const PermuteWithEpGradProblem& p) {
    return p.index_stride * int64_t{sizeof(Index)};
  }

  const char* next_;
  int64_t step_;
  uint64_t begin_, num_rows_;
};

}  // namespace moe::cpu
