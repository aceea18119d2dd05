// The CPU kernels of UnpermuteWithEp: one per instruction set that the machine has, and a portable
// one; and what they share.
#pragma once

#include "cpu/cut.h"
#include "cpu/last_target.h"
#include "cpu/weighted_slots.h"
#include "ops/unpermute_with_ep.h"

namespace moe::cpu {

// Adds what this machine can run, fastest first.
void add_kernels(UnpermuteWithEpKernels& kernels);

// Takes everything, in plain C++.
UnpermuteWithEpKernels::value_type portable_unpermute_with_ep();

size_t workspace_bytes(const UnpermuteWithEpProblem& problem);

// Writes the parts of the output that a worker's chunks name. `streaming`: stores that pass the
// caches by pay off.
using RunUnpermuteChunks = void(const UnpermuteWithEpProblem&, const UnpermuteWithEpPointers&,
                                Chunks&, bool streaming);

// The whole operator: checks the indices if that is asked for, cuts the work into chunks, and hands
// them to threads.
void run_in_chunks(const UnpermuteWithEpProblem& problem, const UnpermuteWithEpPointers& at,
                   void* workspace, RunUnpermuteChunks* run_chunks);

}  // namespace moe::cpu
