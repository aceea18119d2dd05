// The CPU kernels of PermuteWithEp: one per instruction set that the machine has, and a portable
// one; and what they share.
#pragma once

#include "cpu/cut.h"
#include "cpu/last_target.h"
#include "cpu/slots.h"
#include "ops/permute_with_ep.h"

namespace moe::cpu {

// Adds what this machine can run, fastest first.
void add_kernels(PermuteWithEpKernels& kernels);

// Takes everything, in plain C++.
PermuteWithEpKernels::value_type portable_permute_with_ep();

size_t workspace_bytes(const PermuteWithEpProblem& problem);

// Writes what the tokens of a worker's chunks give to permuted_tokens and, with the first bytes of
// their rows, to permuted_probs. `streaming`: stores that pass the caches by pay off.
using PermuteChunks = void(const PermuteWithEpProblem&, const PermuteWithEpPointers&, Chunks&,
                           bool streaming);

// The whole operator: sorts the slots, fills the rows behind the window with zeros, cuts the tokens
// into chunks, and hands them to threads.
void run_in_chunks(const PermuteWithEpProblem& problem, const PermuteWithEpPointers& at,
                   void* workspace, PermuteChunks* run_chunks);

// The rows that slots lead to, from `first_slot` on.
template <class Index>
Slots<Index> slots_of(const PermuteWithEpProblem& p, const PermuteWithEpPointers& at,
                      int64_t first_slot) {
  return Slots<Index>(at.sorted_indices, 1, p.window, first_slot);
}

}  // namespace moe::cpu
