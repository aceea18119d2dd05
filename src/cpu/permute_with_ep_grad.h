// The CPU kernels of PermuteWithEpGrad: one per instruction set that the machine has, and a
// portable one; and what they share.
#pragma once

#include "cpu/cut.h"
#include "cpu/last_target.h"
#include "cpu/slots.h"
#include "ops/permute_with_ep_grad.h"

namespace moe::cpu {

// Adds what this machine can run, fastest first.
void add_kernels(PermuteWithEpGradKernels& kernels);

// Takes everything, in plain C++.
PermuteWithEpGradKernels::value_type portable_permute_with_ep_grad();

size_t workspace_bytes(const PermuteWithEpGradProblem& problem);

// Writes the outputs of a worker's chunks. `streaming`: stores that pass the caches by pay off.
using RunChunks = void(const PermuteWithEpGradProblem&, const PermuteWithEpGradPointers&, Chunks&,
                       bool streaming);

// The whole operator: checks the indices if that is asked for, cuts the work into chunks, and hands
// them to threads.
void run_in_chunks(const PermuteWithEpGradProblem& problem, const PermuteWithEpGradPointers& at,
                   void* workspace, RunChunks* run_chunks);

// The operator's slots, from `first_slot` on.
template <class Index>
Slots<Index> slots_of(const PermuteWithEpGradProblem& p, const PermuteWithEpGradPointers& at,
                      int64_t first_slot) {
  return Slots<Index>(at.sorted_indices, p.index_stride, p.window, first_slot);
}

}  // namespace moe::cpu
