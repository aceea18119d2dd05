#include "acl/runtime/gate.h"

#include <pthread.h>

#include <algorithm>

#include "acl/runtime/error.h"
#include "acl/runtime/stream.h"

namespace moe::acl {

void Gate::open() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (open_) return;
    open_ = true;
    opened_at_ = std::chrono::steady_clock::now();
  }
  changed_.notify_all();
}

bool Gate::is_open() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return open_;
}

std::chrono::steady_clock::time_point Gate::opened_at() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return opened_at_;
}

void Gate::wait(const std::atomic<bool>& cancelled) const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return open_ || cancelled; });
}

void Gate::wake() const {
  // The lock, so that a waiter between its look at `cancelled` and its sleep is not missed.
  { std::lock_guard<std::mutex> lock(mutex_); }
  changed_.notify_all();
}

WaitResult Gate::wait_until(std::chrono::steady_clock::time_point deadline) const {
  const uint64_t self = this_thread_id();
  while (true) {
    const bool stuck = needs_thread(self, 0);
    std::unique_lock<std::mutex> lock(mutex_);
    if (open_) return WaitResult::kDone;
    if (stuck) return WaitResult::kStuck;
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return WaitResult::kTimeout;
    changed_.wait_until(lock, std::min(deadline, now + kStuckCheckInterval));
  }
}

bool Gate::needs_thread(uint64_t thread, int depth) const {
  // Deeper chains of streams that wait for each other are not followed.
  constexpr int kMaxDepth = 32;
  if (depth > kMaxDepth || is_open()) return false;
  if (opener_thread_ != 0) return opener_thread_ == thread;
  const auto queue = opener_queue_.lock();
  return queue != nullptr && queue->waits_for_thread(thread, depth + 1);
}

uint64_t this_thread_id() { return static_cast<uint64_t>(pthread_self()); }

std::chrono::steady_clock::time_point deadline_after(int32_t timeout_ms) {
  if (timeout_ms < -1) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID,
                  text("timeout: got ", timeout_ms, ", needs -1 (for ever) or more"));
  }
  if (timeout_ms == -1) return std::chrono::steady_clock::time_point::max();
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
}

}  // namespace moe::acl
