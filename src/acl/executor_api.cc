// The functions on executors, and the two that every aclnn program may call first and last.
#include <cstddef>
#include <memory>

#include "acl/executor.h"
#include "acl/runtime/error.h"
#include "acl/tensor.h"
#include "aclnn/acl_meta.h"
#include "moe/error.h"

namespace moe::acl {
namespace {

std::shared_ptr<Executor> existing(const aclOpExecutor *handle) {
  auto executor = executors().find(handle);
  if (executor != nullptr) return executor;
  throw Failure(ACLNN_ERR_INNER_NULLPTR,
                handle == nullptr ? "executor: null, but needs a handle"
                                  : "executor: consumed, destroyed or foreign, but needs "
                                    "a live one");
}

// The tensor only says what the caller means: the slot's shape is the one of phase 1.
void check_tensor(const aclTensor *tensor) {
  if (tensor == nullptr) throw Failure(ACLNN_ERR_INNER_NULLPTR, "tensor: null, but needs a handle");
  if (find_tensor(tensor) != nullptr) return;
  throw InvalidArgument("tensor", "a destroyed or foreign handle, but needs a live aclTensor");
}

// `index` counts the slots from `first` on, up to `end`.
void set_address(Executor &executor, size_t first, size_t end, size_t index,
                 const aclTensor *tensor, void *address) {
  check_tensor(tensor);
  if (index >= end - first) {
    throw InvalidArgument("index", text(index, ", but needs less than ", end - first));
  }
  executor.set_address(first + index, address);
}

}  // namespace
}  // namespace moe::acl

using namespace moe::acl;

aclnnStatus aclnnInit(const char *) { return ACLNN_SUCCESS; }
aclnnStatus aclnnFinalize() { return ACLNN_SUCCESS; }

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor) {
  return guarded_aclnn([&] { existing(executor)->set_repeatable(); });
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor) {
  return guarded_aclnn([&] {
    if (executor != nullptr && executors().erase(executor) == nullptr) existing(executor);
  });
}

aclnnStatus aclSetInputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
                                  void *addr) {
  return guarded_aclnn([&] {
    const auto call = existing(executor);
    set_address(*call, 0, call->op().num_inputs, index, tensor, addr);
  });
}

aclnnStatus aclSetOutputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
                                   void *addr) {
  return guarded_aclnn([&] {
    const auto call = existing(executor);
    set_address(*call, call->op().num_inputs, call->op().slots.size(), index, tensor, addr);
  });
}

aclnnStatus aclSetTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
                             void *addr) {
  return guarded_aclnn([&] {
    const auto call = existing(executor);
    set_address(*call, 0, call->op().slots.size(), index, tensor, addr);
  });
}
