// What an aclOpExecutor handle stands for: a plan, its tensors' addresses, and the bound call they
// make. One class for all operators; an operator supplies its plan and how to bind it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "acl/op_spec.h"
#include "acl/runtime/handles.h"
#include "acl/runtime/memory.h"
#include "moe/engine.h"

namespace moe::acl {

// No operator here has more tensors.
inline constexpr size_t kMaxSlots = 6;

using Addresses = std::array<void*, kMaxSlots>;

// A tensor parameter, but for its address.
struct TensorSlot {
  bool given = false;  // false: null or ignored in phase 1
  // The bytes that the view touches, counted from the address.
  size_t first_byte = 0;
  size_t num_bytes = 0;
};

// All tensor parameters: inputs, then outputs.
struct TensorSlots {
  std::array<TensorSlot, kMaxSlots> views;
  Addresses addresses{};
};

class Executor {
 public:
  Executor(const OpSpec& op, const TensorSlots& slots, size_t workspace_bytes)
      : op_(op),
        views_(slots.views),
        workspace_bytes_(workspace_bytes),
        addresses_(slots.addresses) {}
  virtual ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const OpSpec& op() const { return op_; }
  size_t workspace_bytes() const { return workspace_bytes_; }

  // Checks the addresses that are known, and binds when all are.
  void bind_early();

  bool repeatable() const { return repeatable_.load(std::memory_order_acquire); }
  void set_repeatable() { repeatable_.store(true, std::memory_order_release); }

  // Stores, nothing else: the next launch looks at it. `slot` counts inputs, then outputs.
  void set_address(size_t slot, void* address);

  // Checks all that phase 2 has to, binds again where an address is new, and returns the work to
  // queue. The work holds the blocks that it touches.
  std::function<void()> prepare(void* workspace, uint64_t workspace_size);

 protected:
  virtual BoundCall bind_plan(const Addresses& addresses) const = 0;

 private:
  // One more for the workspace.
  using Pins = std::array<std::shared_ptr<Block>, kMaxSlots + 1>;

  std::shared_ptr<Block> pin_slot(size_t slot);
  std::shared_ptr<Block> pin_workspace(void* workspace, uint64_t workspace_size) const;
  void require_address(size_t slot) const;

  const OpSpec& op_;
  const std::array<TensorSlot, kMaxSlots> views_;
  const size_t workspace_bytes_;

  std::atomic<bool> repeatable_{false};

  std::mutex mutex_;  // for what follows
  bool bound_is_current_ = false;
  Addresses addresses_;
  // Where the addresses were found to lie, so that a launch need not search. Weak: an executor that
  // waits for its launch keeps no freed memory.
  std::array<std::weak_ptr<Block>, kMaxSlots> blocks_;
  BoundCall bound_;
};

// An executor for an operator of the core.
template <class Plan>
class PlanExecutor final : public Executor {
 public:
  using Bind = BoundCall (*)(const Plan&, const Addresses&);
  PlanExecutor(const OpSpec& op, const TensorSlots& slots, Plan plan, Bind bind)
      : Executor(op, slots, plan.workspace_bytes()), plan_(std::move(plan)), bind_(bind) {}

 private:
  BoundCall bind_plan(const Addresses& addresses) const override { return bind_(plan_, addresses); }

  Plan plan_;
  Bind bind_;
};

HandleTable<Executor>& executors();

}  // namespace moe::acl
