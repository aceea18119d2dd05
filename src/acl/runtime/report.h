// Reports: how a callback in a stream gets to the thread that was subscribed for it.
#pragma once

#include <cstdint>
#include <memory>

#include "acl/acl_rt.h"

namespace moe::acl {

class Queue;

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
