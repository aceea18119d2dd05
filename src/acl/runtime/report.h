// Reports: how a callback in a stream gets to the thread that was subscribed for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "acl/acl_rt.h"
#include "acl/runtime/gate.h"

namespace moe::acl {

class Queue;

// A callback that its stream has reached, or will reach.
struct Report {
  aclrtCallback function;
  void* user_data;
  std::weak_ptr<Queue> queue;
  std::shared_ptr<Gate> done;  // opens when the callback has run or was dropped
};

void subscribe(uint64_t thread, const std::shared_ptr<Queue>& queue);
void unsubscribe(uint64_t thread, const std::shared_ptr<Queue>& queue);
// The end of a stream: forgets its subscription.
void forget_subscription(const Queue* queue);
// Runs one callback for the calling thread; a Failure on timeout.
void process_report(int32_t timeout_ms);
// Queues a callback.
void launch_callback(aclrtCallback function, void* user_data, bool block,
                     const std::shared_ptr<Queue>& queue);

}  // namespace moe::acl
