// Where and how operators run: the engine a plan is made for, streams to run on, and the call that
// comes out of plan and bind.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "moe/export.h"

namespace moe {

// What a plan is made for.
struct Engine {
  // Most threads that a run of the plan may use. 0: the process's limit (set_num_threads).
  int num_threads = 0;
  // Forces a kernel by the name that kernel_name() reports, for instance "portable". Empty: the
  // environment variable MOE_KERNEL, and where that is empty too the fastest one that accepts the
  // case. plan() throws InvalidArgument when the name is unknown on this machine or the kernel
  // refuses the case.
  std::string kernel{};
};

// The most threads that any run may use from now on; plans made before keep what they took.
// n < 1 restores the default: the environment variable MOE_NUM_THREADS, or all processors that the
// process may run on. Safe from any thread.
MOE_API void set_num_threads(int n);
MOE_API int num_threads();

// A queue that runs what it is given later, in order, one at a time. Implemented by the caller.
class MOE_API Stream {
 public:
  virtual ~Stream();
  virtual void enqueue(std::function<void()> work) = 0;
};

// The implementation behind a bound call: see BoundCall.
class MOE_API Call {
 public:
  virtual ~Call();
  // Writes the outputs; `workspace` has workspace_bytes() at least. Several threads may run it at
  // once.
  void run(void* workspace) const { run_(*this, workspace); }
  size_t workspace_bytes() const noexcept { return workspace_bytes_; }

 protected:
  // How it runs. Not a virtual function: a small call that finds nothing in the caches would read
  // its class's table, too.
  using Run = void(const Call& call, void* workspace);
  Call(Run* how, size_t workspace_bytes) : run_(how), workspace_bytes_(workspace_bytes) {}

 private:
  Run* run_;
  size_t workspace_bytes_;
};

// A plan with its addresses: everything is checked, only running is left. Cheap to copy, immutable,
// and safe to run from several threads at once as long as they use different workspaces and
// outputs. It keeps its plan alive, but never the caller's memory.
class MOE_API BoundCall {
 public:
  BoundCall() = default;
  explicit BoundCall(std::shared_ptr<const Call> call) : call_(std::move(call)) {}

  // Bytes that `workspace` must have, with any alignment; 0 when none is needed.
  size_t workspace_bytes() const noexcept { return call_ ? call_->workspace_bytes() : 0; }

  // Runs now and returns when the outputs are written. NullArgument when a workspace is needed and
  // null; IndexError from the checked mode. Results never depend on threads or timing.
  void run(void* workspace = nullptr) const {
    if (!call_) return;
    if (!workspace && call_->workspace_bytes() > 0) lacks_workspace();
    call_->run(workspace);
  }
  // The same through a stream: returns at once. Memory must live until the stream has passed; what
  // run would throw, it throws inside the stream's work (null arguments: here, at once).
  void run(void* workspace, Stream& stream) const;

 private:
  [[noreturn]] void lacks_workspace() const;

  std::shared_ptr<const Call> call_;
};

}  // namespace moe
