#include "acl/runtime/report.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "acl/runtime/device.h"
#include "acl/runtime/enums.h"
#include "acl/runtime/error.h"
#include "acl/runtime/gate.h"
#include "acl/runtime/stream.h"

namespace moe::acl {
namespace {

// A callback that its stream has reached.
struct Report {
  aclrtCallback function;
  void* user_data;
  const Queue* queue;
  std::shared_ptr<GateOpener> done;  // the stream goes on when the last holder lets go
};
using Reports = std::deque<Report>;

constexpr char kDropped[] = "fn: a callback was dropped, its stream lost the thread subscribed";

struct Reporting {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<const Queue*, uint64_t> subscriber;
  std::map<uint64_t, Reports> inboxes;

  bool serves_any(uint64_t thread) const {
    return std::any_of(subscriber.begin(), subscriber.end(),
                       [=](const auto& entry) { return entry.second == thread; });
  }
};
Reporting& reporting() {
  static Reporting& instance = *new Reporting;
  return instance;
}

uint64_t require_subscriber(const Queue* queue) {
  Reporting& r = reporting();
  std::lock_guard<std::mutex> lock(r.mutex);
  const auto found = r.subscriber.find(queue);
  if (found == r.subscriber.end()) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID,
                  "stream: no thread is subscribed for its callbacks, needs aclrtSubscribeReport");
  }
  return found->second;
}

// In the stream's turn: hands the callback over.
void deliver(Report report) {
  Reporting& r = reporting();
  std::lock_guard<std::mutex> lock(r.mutex);
  const auto found = r.subscriber.find(report.queue);
  if (found == r.subscriber.end()) throw Failure(ACL_ERROR_RT_AICORE_EXCEPTION, kDropped);
  r.inboxes[found->second].push_back(std::move(report));
  r.changed.notify_all();
}

Report take_report(int32_t timeout_ms) {
  const auto deadline = deadline_after(timeout_ms);
  const uint64_t self = this_thread_id();
  Reporting& r = reporting();
  std::unique_lock<std::mutex> lock(r.mutex);
  while (true) {
    const auto inbox = r.inboxes.find(self);
    if (inbox != r.inboxes.end()) {
      Report report = std::move(inbox->second.front());
      inbox->second.pop_front();
      if (inbox->second.empty()) r.inboxes.erase(inbox);
      return report;
    }
    if (!r.serves_any(self)) {
      throw Failure(ACL_ERROR_RT_PARAM_INVALID,
                    "threadId: no stream is subscribed to this thread, needs aclrtSubscribeReport");
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      throw Failure(ACL_ERROR_RT_REPORT_TIMEOUT,
                    text("timeout: no callback in ", timeout_ms, " ms"));
    }
    r.changed.wait_until(lock, deadline);
  }
}

// The reports of a queue that its thread has not taken.
Reports take_undelivered(Reporting& r, uint64_t thread, const Queue* queue) {
  Reports dropped;
  const auto inbox = r.inboxes.find(thread);
  if (inbox == r.inboxes.end()) return dropped;
  Reports kept;
  for (Report& report : inbox->second) {
    (report.queue == queue ? dropped : kept).push_back(std::move(report));
  }
  inbox->second.swap(kept);
  if (inbox->second.empty()) r.inboxes.erase(inbox);
  return dropped;
}

}  // namespace

void subscribe(uint64_t thread, const std::shared_ptr<Queue>& queue) {
  Reporting& r = reporting();
  std::lock_guard<std::mutex> lock(r.mutex);
  const uint64_t holder = r.subscriber.emplace(queue.get(), thread).first->second;
  if (holder != thread) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID, text("threadId: got ", thread, ", but thread ",
                                                   holder, " is subscribed already"));
  }
}

void unsubscribe(uint64_t thread, const std::shared_ptr<Queue>& queue) {
  Reports dropped;
  Reporting& r = reporting();
  {
    std::lock_guard<std::mutex> lock(r.mutex);
    const auto found = r.subscriber.find(queue.get());
    if (found == r.subscriber.end() || found->second != thread) {
      throw Failure(ACL_ERROR_RT_PARAM_INVALID,
                    text("threadId: thread ", thread, " is not subscribed for this stream"));
    }
    r.subscriber.erase(found);
    dropped = take_undelivered(r, thread, queue.get());
  }
  r.changed.notify_all();
  if (!dropped.empty()) queue->set_failure(ACL_ERROR_RT_AICORE_EXCEPTION, kDropped);
}

void forget_subscription(const Queue* queue) {
  Reporting& r = reporting();
  {
    std::lock_guard<std::mutex> lock(r.mutex);
    r.subscriber.erase(queue);
  }
  r.changed.notify_all();
}

void process_report(int32_t timeout_ms) {
  const Report report = take_report(timeout_ms);
  report.function(report.user_data);
}

void launch_callback(aclrtCallback function, void* user_data, bool block,
                     const std::shared_ptr<Queue>& queue) {
  const auto gate = std::make_shared<Gate>(require_subscriber(queue.get()));
  // The queue keeps nothing of the report once it is delivered, or the gate would never open.
  auto report = std::make_shared<Report>(
      Report{function, user_data, queue.get(), std::make_shared<GateOpener>(gate)});
  queue->push([report] { deliver(std::move(*report)); });
  if (block) queue->push_gate(gate);
}

}  // namespace moe::acl

using moe::acl::Failure;
using moe::acl::guarded;
using moe::acl::launch_callback;
using moe::acl::number_of;
using moe::acl::process_report;
using moe::acl::require_argument;
using moe::acl::resolve_stream;
using moe::acl::subscribe;
using moe::acl::text;
using moe::acl::unsubscribe;

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
  return guarded([&] { subscribe(threadId, resolve_stream(stream)->shared_queue()); });
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
  return guarded([&] { unsubscribe(threadId, resolve_stream(stream)->shared_queue()); });
}

aclError aclrtProcessReport(int32_t timeout) {
  return guarded([&] { process_report(timeout); });
}

aclError aclrtLaunchCallback(aclrtCallback fn, void* userData, aclrtCallbackBlockType blockType,
                             aclrtStream stream) {
  return guarded([&] {
    require_argument(reinterpret_cast<const void*>(fn), "fn");
    const int type = number_of(blockType);
    if (type != ACL_CALLBACK_NO_BLOCK && type != ACL_CALLBACK_BLOCK) {
      throw Failure(ACL_ERROR_INVALID_PARAM, text("blockType: got ", type, ", needs 0 or 1"));
    }
    launch_callback(fn, userData, type == ACL_CALLBACK_BLOCK,
                    resolve_stream(stream)->shared_queue());
  });
}
