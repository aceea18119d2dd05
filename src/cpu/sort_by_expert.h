// The CPU kernel of SortByExpert, which the permutation begins with too.
#pragma once

#include <cstddef>

#include "ops/sort_by_expert.h"

namespace moe::cpu {

void add_kernels(SortByExpertKernels& kernels);

size_t workspace_bytes(const SortByExpertProblem& problem);
void sort_by_expert(const SortByExpertProblem& problem, const SortByExpertPointers& at,
                    void* workspace);

}  // namespace moe::cpu
