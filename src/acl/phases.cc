#include "acl/phases.h"

#include "acl/runtime/device.h"
#include "acl/runtime/stream.h"

namespace moe::acl {
namespace {

Failure used_up() {
  return Failure(ACLNN_ERR_INNER_NULLPTR,
                 "executor: consumed, destroyed or foreign, but needs one that phase 1 made and "
                 "that has not run, or a repeatable one");
}

std::shared_ptr<Executor> executor_of(const OpSpec& op, const aclOpExecutor* handle) {
  require("executor", handle);
  auto executor = executors().find(handle);
  if (executor == nullptr) throw used_up();
  if (&executor->op() == &op) return executor;
  throw InvalidArgument(
      "executor", text("made by ", executor->op().name, "GetWorkspaceSize, but needs one made by ",
                       op.name, "GetWorkspaceSize"));
}

}  // namespace

void publish(std::shared_ptr<Executor> made, uint64_t* workspace_size, aclOpExecutor** executor) {
  made->bind_early();
  const size_t workspace_bytes = made->workspace_bytes();
  *executor = static_cast<aclOpExecutor*>(executors().insert(std::move(made)));
  *workspace_size = workspace_bytes;
}

aclnnStatus phase_two(const OpSpec& op, void* workspace, uint64_t workspace_size,
                      aclOpExecutor* executor, aclrtStream stream) noexcept {
  return guarded_aclnn([&] {
    with_prototype_names(op, [&] {
      const auto call = executor_of(op, executor);
      auto work = call->prepare(workspace, workspace_size);
      const auto queue = resolve_stream(stream);
      // Of two threads that launch the same executor, one takes it.
      if (!call->repeatable() && executors().erase(executor) == nullptr) throw used_up();
      queue->enqueue(std::move(work));
    });
  });
}

}  // namespace moe::acl
