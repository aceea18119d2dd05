// The CPU kernels of UnpermuteWithEp: one per instruction set that the machine has, and a portable
// one; and what they share.
#pragma once

#include <cstddef>

#include "ops/unpermute_with_ep.h"

namespace moe::cpu {

// Adds what this machine can run, fastest first.
void add_kernels(UnpermuteWithEpKernels& kernels);

// Takes everything, in plain C++.
UnpermuteWithEpKernels::value_type portable_unpermute_with_ep();

size_t workspace_bytes(const UnpermuteWithEpProblem& problem);

}  // namespace moe::cpu
