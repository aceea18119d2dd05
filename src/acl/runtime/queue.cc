#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <utility>
#include <vector>

#include "acl/runtime/error.h"
#include "acl/runtime/stream.h"

namespace moe::acl {
namespace {

// All queues, so that the process can wait for them and end them.
class QueueList {
 public:
  void add(const std::shared_ptr<Queue>& queue) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(queues_, [](const auto& other) { return other.expired(); });
    queues_.push_back(queue);
  }
  std::vector<std::shared_ptr<Queue>> live() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::shared_ptr<Queue>> result;
    for (const auto& weak : queues_) {
      if (auto queue = weak.lock()) result.push_back(std::move(queue));
    }
    return result;
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Queue>> queues_;
};
QueueList& queue_list() {
  static QueueList& instance = *new QueueList;
  return instance;
}

// At exit, before the objects go that running work may use: those were there before the first
// stream, so their destructors run after this.
void shut_down_all() {
  for (const auto& queue : queue_list().live()) queue->shut_down();
}

}  // namespace

std::vector<std::shared_ptr<Queue>> live_queues() { return queue_list().live(); }

void Queue::start() {
  static std::once_flag once;
  std::call_once(once, [] { std::atexit(shut_down_all); });
  queue_list().add(shared_from_this());
  try {
    thread_ = std::thread([self = shared_from_this()] { self->run(); });
  } catch (const std::system_error& e) {
    throw Failure(ACL_ERROR_INTERNAL_ERROR, text("stream: cannot start a thread: ", e.what()));
  }
}

void Queue::shut_down() {
  std::shared_ptr<Gate> gate;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    gate = held_at_;
  }
  work_ready_.notify_all();
  if (gate != nullptr) gate->wake();
  std::lock_guard<std::mutex> lock(thread_mutex_);
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void Queue::push(std::function<void()> work) { push_task({std::move(work), nullptr}); }
void Queue::push_gate(std::shared_ptr<Gate> gate) { push_task({nullptr, std::move(gate)}); }

void Queue::push_task(Task task) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!stopping_) {
      tasks_.push_back(std::move(task));
      ++num_pushed_;
    }
  }
  work_ready_.notify_one();
}

void Queue::set_failure(int code, std::string message) noexcept {
  std::lock_guard<std::mutex> lock(mutex_);
  if (failure_code_ != 0) return;
  failure_code_ = code;
  failure_ = std::move(message);
}

WaitResult Queue::wait(std::chrono::steady_clock::time_point deadline) {
  const uint64_t self = this_thread_id();
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t ticket = num_pushed_;
  while (num_done_ < ticket) {
    const auto gate = held_at_;
    if (gate != nullptr) {
      // Off the lock, because the gate's opener may be another queue, or this one.
      lock.unlock();
      const bool stuck = gate->needs_thread(self, 0);
      lock.lock();
      if (num_done_ >= ticket || held_at_ != gate) continue;
      if (stuck) return WaitResult::kStuck;
    }
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return WaitResult::kTimeout;
    work_done_.wait_until(
        lock, gate != nullptr ? std::min(deadline, now + kStuckCheckInterval) : deadline);
  }
  return WaitResult::kDone;
}

bool Queue::idle() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return num_done_ == num_pushed_;
}

bool Queue::waits_for_thread(uint64_t thread, int depth) const {
  std::shared_ptr<Gate> gate;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    gate = held_at_;
  }
  return gate != nullptr && gate->needs_thread(thread, depth);
}

void Queue::throw_failure() {
  std::string message;
  int code = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    code = std::exchange(failure_code_, 0);
    message = std::exchange(failure_, {});
  }
  if (code != 0) throw Failure(code, message);
}

void Queue::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    work_ready_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (stopping_) break;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    run_task(task);
    // Before the work counts as done, so that after a synchronisation its memory is free again.
    task = {};
    lock.lock();
    ++num_done_;
    work_done_.notify_all();
  }
  const auto dropped = std::exchange(tasks_, {});
  num_done_ = num_pushed_;
  work_done_.notify_all();
  lock.unlock();
  if (!dropped.empty()) {
    set_failure(ACL_ERROR_RT_AICORE_EXCEPTION, "stream: its work was dropped, the process exits");
  }
}

void Queue::run_task(Task& task) {
  if (task.gate != nullptr) return hold_at(task.gate);
  try {
    task.work();
  } catch (const Failure& e) {
    set_failure(e.code(), e.what());
  } catch (const std::exception& e) {
    set_failure(ACL_ERROR_RT_AICORE_EXCEPTION, e.what());
  } catch (...) {
    set_failure(ACL_ERROR_RT_AICORE_EXCEPTION, "an exception of unknown type");
  }
}

void Queue::hold_at(const std::shared_ptr<Gate>& gate) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    held_at_ = gate;
  }
  // Whoever waits for this queue has to look whether it needs that very thread.
  work_done_.notify_all();
  gate->wait(stopping_);
  std::lock_guard<std::mutex> lock(mutex_);
  held_at_ = nullptr;
}

}  // namespace moe::acl
