// SortByExpert as its kernels see it: checked, and free of tensor objects. Also for operators that
// begin with it.
#pragma once

#include <cstdint>

#include "moe/sort_by_expert.h"
#include "ops/kernel.h"

namespace moe {

struct SortByExpertProblem {
  int64_t num_tokens, top_k;
  int64_t token_stride, slot_stride;  // of indices
  // Ids in [0, num_experts) are routed. 2^31 where the caller did not say.
  int64_t num_experts;
  bool is_bounded;  // the caller said how many experts there are
  DType index_dtype, sorted_dtype, counts_dtype;
  bool has_counts;
  bool check_indices;  // the kernel verifies the indices before it writes anything
  int num_threads;     // at most

  int64_t num_slots() const { return num_tokens * top_k; }
};

// First elements; null where the tensor has none.
struct SortByExpertPointers {
  const void* indices;
  void* sorted_indices;
  void* tokens_per_expert;
};

using SortByExpertKernels = KernelList<SortByExpertProblem, SortByExpertPointers>;

// Defined in backends.cc.
const SortByExpertKernels& sort_by_expert_kernels();

// Checks the arguments, and says what they ask for.
SortByExpertProblem checked_problem(const SortByExpert::Args& args, int num_threads);

}  // namespace moe
