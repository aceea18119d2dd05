// The CPU kernels of PermuteWithEpGrad: one per instruction set that the machine has, and a
// portable one; and what they share.
#pragma once

#include <cstddef>

#include "ops/permute_with_ep_grad.h"

namespace moe::cpu {

// Adds what this machine can run, fastest first.
void add_kernels(PermuteWithEpGradKernels& kernels);

// Takes everything, in plain C++.
PermuteWithEpGradKernels::value_type portable_permute_with_ep_grad();

size_t workspace_bytes(const PermuteWithEpGradProblem& problem);

}  // namespace moe::cpu
