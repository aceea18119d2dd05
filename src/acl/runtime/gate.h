// A gate that opens once: what streams and threads wait at.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace moe::acl {

class Queue;

// kStuck: waiting would never end, because what is waited for needs the waiting thread itself.
enum class WaitResult { kDone, kTimeout, kStuck };

class Gate {
 public:
  // Opened by the calls of this thread only; 0: not bound to a thread.
  explicit Gate(uint64_t opener_thread = 0) : opener_thread_(opener_thread) {}
  // Opened by work of this queue.
  explicit Gate(std::weak_ptr<Queue> opener_queue) : opener_queue_(std::move(opener_queue)) {}

  void open();
  bool is_open() const;
  // When it opened; meaningless before.
  std::chrono::steady_clock::time_point opened_at() const;

  // Waits until open, or until `cancelled` is set and wake() called.
  void wait(const std::atomic<bool>& cancelled) const;
  void wake() const;
  WaitResult wait_until(std::chrono::steady_clock::time_point deadline) const;

  // Whether opening it needs `thread`, which therefore must not wait for it.
  bool needs_thread(uint64_t thread, int depth) const;

 private:
  const uint64_t opener_thread_ = 0;
  const std::weak_ptr<Queue> opener_queue_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool open_ = false;
  std::chrono::steady_clock::time_point opened_at_;
};

// Opens a gate when it goes: held by the work that has to open it, so that work which is dropped
// instead of run lets nobody wait for ever.
class GateOpener {
 public:
  explicit GateOpener(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}
  GateOpener(const GateOpener&) = delete;
  GateOpener& operator=(const GateOpener&) = delete;
  ~GateOpener() { gate_->open(); }

 private:
  std::shared_ptr<Gate> gate_;
};

uint64_t this_thread_id();

// How often a waiting thread looks whether it has got stuck: that changes in other queues, which
// do not know who waits.
inline constexpr std::chrono::milliseconds kStuckCheckInterval{10};

// A point in time by which a wait of `timeout_ms` (-1: for ever) has to end. A Failure with
// ACL_ERROR_RT_PARAM_INVALID for less than -1.
std::chrono::steady_clock::time_point deadline_after(int32_t timeout_ms);

}  // namespace moe::acl
