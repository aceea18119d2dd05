// The CPU kernels of PermuteWithEpGrad.
#pragma once

#include "ops/permute_with_ep_grad.h"

namespace moe::cpu {

// Adds what this machine can run, fastest first.
void add_kernels(PermuteWithEpGradKernels& kernels);

}  // namespace moe::cpu
