#include "acl/executor.h"

#include "acl/device_memory.h"
#include "acl/runtime/error.h"
#include "aclnn/acl_meta.h"
#include "moe/error.h"

namespace moe::acl {

HandleTable<Executor>& executors() {
  static auto& table = *new HandleTable<Executor>(HandleKind::kExecutor);
  return table;
}

void Executor::set_address(size_t slot, void* address) {
  if (!views_[slot].given) {
    throw InvalidArgument("index", text(op_.slots[slot], " was null or ignored in phase 1"));
  }
  const std::lock_guard lock(mutex_);
  if (addresses_[slot] == address) return;
  addresses_[slot] = address;
  blocks_[slot].reset();
  bound_is_current_ = false;
}

void Executor::bind_early() {
  const std::lock_guard lock(mutex_);
  bool complete = true;
  for (size_t slot = 0; slot < op_.slots.size(); ++slot) {
    if (!views_[slot].given) continue;
    if (addresses_[slot] == nullptr) {
      complete = false;
    } else {
      pin_slot(slot);
    }
  }
  if (!complete) return;
  bound_ = bind_plan(addresses_);
  bound_is_current_ = true;
}

std::shared_ptr<Block> Executor::pin_slot(size_t slot) {
  if (auto known = blocks_[slot].lock(); known != nullptr && known->live()) return known;
  const TensorSlot& view = views_[slot];
  auto block = pin_memory(op_.slots[slot], addresses_[slot], view.first_byte, view.num_bytes);
  blocks_[slot] = block;
  return block;
}

std::shared_ptr<Block> Executor::pin_workspace(void* workspace, uint64_t workspace_size) const {
  if (workspace_bytes_ == 0) return nullptr;
  if (workspace == nullptr) {
    throw NullArgument("workspace",
                       text("null, but phase 1 asked for ", workspace_bytes_, " bytes"));
  }
  if (workspace_size < workspace_bytes_) {
    throw InvalidArgument("workspaceSize", text(workspace_size, ", but phase 1 asked for ",
                                                workspace_bytes_, " bytes"));
  }
  auto block = pin_memory("workspace", workspace, 0, workspace_bytes_);
  for (size_t slot = 0; slot < op_.slots.size(); ++slot) {
    if (!views_[slot].given) continue;
    require_apart(op_.slots[slot], advanced(addresses_[slot], views_[slot].first_byte),
                  views_[slot].num_bytes, workspace, workspace_bytes_);
  }
  return block;
}

void Executor::require_address(size_t slot) const {
  if (addresses_[slot] != nullptr) return;
  throw NullArgument(op_.slots[slot], "its data is still null, but phase 2 needs an address");
}

std::function<void()> Executor::prepare(void* workspace, uint64_t workspace_size) {
  const std::lock_guard lock(mutex_);
  Pins pins;
  for (size_t slot = 0; slot < op_.slots.size(); ++slot) {
    if (!views_[slot].given) continue;
    require_address(slot);
    // Again at every launch: the block may have been freed since, and the work must hold it.
    pins[slot] = pin_slot(slot);
  }
  pins.back() = pin_workspace(workspace, workspace_size);
  if (!bound_is_current_) {
    bound_ = bind_plan(addresses_);
    bound_is_current_ = true;
  }
  return [bound = bound_, workspace, pins = std::move(pins), &op = op_] {
    with_prototype_names(op, [&] { bound.run(workspace); });
  };
}

}  // namespace moe::acl
