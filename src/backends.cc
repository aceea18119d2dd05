// The one place where operators meet their kernels.
#include "cpu/permute_with_ep.h"
#include "cpu/permute_with_ep_grad.h"
#include "cpu/sort_by_expert.h"
#include "cpu/unpermute_with_ep.h"
#include "cpu/unpermute_with_ep_grad.h"
#include "ops/permute_with_ep.h"
#include "ops/permute_with_ep_grad.h"
#include "ops/sort_by_expert.h"
#include "ops/unpermute_with_ep.h"
#include "ops/unpermute_with_ep_grad.h"

namespace moe {
namespace {

template <class Kernels>
const Kernels& kernels_of_this_machine() {
  static const Kernels kernels = [] {
    Kernels list;
    cpu::add_kernels(list);
    return list;
  }();
  return kernels;
}

}  // namespace

const PermuteWithEpKernels& permute_with_ep_kernels() {
  return kernels_of_this_machine<PermuteWithEpKernels>();
}
const PermuteWithEpGradKernels& permute_with_ep_grad_kernels() {
  return kernels_of_this_machine<PermuteWithEpGradKernels>();
}
const SortByExpertKernels& sort_by_expert_kernels() {
  return kernels_of_this_machine<SortByExpertKernels>();
}

const UnpermuteWithEpKernels& unpermute_with_ep_kernels() {
  return kernels_of_this_machine<UnpermuteWithEpKernels>();
}

const UnpermuteWithEpGradKernels& unpermute_with_ep_grad_kernels() {
  return kernels_of_this_machine<UnpermuteWithEpGradKernels>();
}

}  // namespace moe
