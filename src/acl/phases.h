// The two phases that every operator pair shares.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "acl/arguments.h"
#include "acl/executor.h"
#include "acl/op_spec.h"
#include "acl/runtime/error.h"
#include "aclnn/acl_meta.h"

namespace moe::acl {

// Binds what can be bound and hands out the executor's handle: the last step of phase 1.
void publish(std::shared_ptr<Executor> made, uint64_t* workspace_size, aclOpExecutor** executor);

// Phase 1: `prepare` turns its Arguments into an executor (make_executor). Neither out-parameter is
// written before everything has passed.
template <class Prepare>
aclnnStatus phase_one(const OpSpec& op, uint64_t* workspace_size, aclOpExecutor** executor,
                      Prepare&& prepare) noexcept {
  return guarded_aclnn([&] {
    with_prototype_names(op, [&] {
      require("workspaceSize", workspace_size);
      require("executor", executor);
      Arguments arguments(op);
      auto made = prepare(arguments);
      publish(std::move(made), workspace_size, executor);
    });
  });
}

// Phase 2 of any operator. A call that fails does not consume the executor.
aclnnStatus phase_two(const OpSpec& op, void* workspace, uint64_t workspace_size,
                      aclOpExecutor* executor, aclrtStream stream) noexcept;

template <class Plan>
std::shared_ptr<Executor> make_executor(const Arguments& arguments, Plan plan,
                                        typename PlanExecutor<Plan>::Bind bind) {
  return std::make_shared<PlanExecutor<Plan>>(arguments.op(), arguments.slots(), std::move(plan),
                                              bind);
}

}  // namespace moe::acl
