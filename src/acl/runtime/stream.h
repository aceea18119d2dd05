// Streams: queues of work that run in order, each on its own thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl_base.h"
#include "acl/runtime/gate.h"
#include "acl/runtime/handles.h"
#include "moe/engine.h"

namespace moe::acl {

// The queue proper, and its thread. Work that throws leaves the first failure until it is taken;
// later work runs all the same.
class Queue : public std::enable_shared_from_this<Queue> {
 public:
  void start();      // once, before anything else; a Failure when no thread can be made
  void shut_down();  // ends after the work that runs now; what is queued is dropped

  // Returns at once; work that comes after shut_down is dropped.
  void push(std::function<void()> work);
  // Later work waits until the gate is open.
  void push_gate(std::shared_ptr<Gate> gate);
  void set_failure(int code, std::string message) noexcept;

  // Waits for what was pushed before the call.
  WaitResult wait(std::chrono::steady_clock::time_point deadline);
  bool idle() const;
  bool waits_for_thread(uint64_t thread, int depth) const;

  // Throws the stored failure and forgets it.
  void throw_failure();

 private:
  struct Task {
    std::function<void()> work;
    std::shared_ptr<Gate> gate;
  };
  void push_task(Task task);
  void run();
  void run_task(Task& task);
  void hold_at(const std::shared_ptr<Gate>& gate);

  mutable std::mutex mutex_;
  std::condition_variable work_ready_;
  std::condition_variable work_done_;
  std::deque<Task> tasks_;
  std::shared_ptr<Gate> held_at_;
  uint64_t num_pushed_ = 0;
  uint64_t num_done_ = 0;
  int failure_code_ = 0;
  std::string failure_;
  std::atomic<bool> stopping_{false};
  std::mutex thread_mutex_;
  std::thread thread_;
};

// What an aclrtStream stands for. Operators run on it through moe::Stream.
class Stream final : public moe::Stream {
 public:
  explicit Stream(aclrtContext context);
  ~Stream() override;

  // A launch: returns at once, or with MOE_ACL_LAUNCH_BLOCKING when the work is done; what it
  // throws surfaces at the next synchronisation either way. The work may hold shared_ptr<Block> to
  // pin memory: they are released, off every lock, before the work counts as done.
  void enqueue(std::function<void()> work) override;

  aclrtContext context() const { return context_; }
  Queue& queue() { return *queue_; }
  const std::shared_ptr<Queue>& shared_queue() { return queue_; }

  // Waits, then throws what went wrong: the stream's failure or, in guard mode, damaged blocks.
  // `timeout_ms` -1: for ever.
  void synchronize(int32_t timeout_ms);

 private:
  const aclrtContext context_;
  const std::shared_ptr<Queue> queue_;
};

HandleTable<Stream>& streams();

// All queues that have not ended.
std::vector<std::shared_ptr<Queue>> live_queues();

// Waits for all queues of the process, then throws the first of their failures, or damaged blocks.
void synchronize_all_streams();

// The last steps of a stream that no handle names any more: waits for its work, forgets its
// subscription, and throws a failure that nobody was told of.
void end_stream(Stream& stream);

}  // namespace moe::acl
