#include "acl/runtime/event.h"

#include <chrono>
#include <utility>

#include "acl/acl_rt.h"
#include "acl/runtime/device.h"
#include "acl/runtime/error.h"
#include "acl/runtime/memory.h"
#include "acl/runtime/stream.h"

namespace moe::acl {
namespace {

std::shared_ptr<Event> resolve_event(aclrtEvent handle, const char* name) {
  auto event = events().find(handle);
  if (event == nullptr) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID,
                  text(name, ": ", hex(handle), " is destroyed or no event"));
  }
  return event;
}

void create_event(aclrtEvent* event) {
  require_argument(event, "event");
  require_context();
  *event = events().insert(std::make_shared<Event>());
}

void synchronize_event(aclrtEvent handle, int32_t timeout_ms) {
  require_argument(handle, "event");
  const auto deadline = deadline_after(timeout_ms);
  require_context();
  const auto gate = resolve_event(handle, "event")->recorded();
  if (gate == nullptr) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID, "event: not recorded, so it would never complete");
  }
  const WaitResult result = gate->wait_until(deadline);
  if (result == WaitResult::kTimeout) {
    throw Failure(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
                  text("event: not complete after ", timeout_ms, " ms"));
  }
  if (result == WaitResult::kStuck) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID,
                  "event: its stream waits for a callback that only this thread runs");
  }
  check_all_blocks();
}

void record_event(Event& event, Stream& stream) {
  auto gate = std::make_shared<Gate>(std::weak_ptr<Queue>(stream.shared_queue()));
  auto opener = std::make_shared<GateOpener>(gate);
  // The gate opens as the work goes, whether it was run or dropped.
  stream.queue().push([opener] {});
  // Only now: a wait that another thread queues must come behind the work that ends it.
  event.set_recorded(std::move(gate));
}

std::chrono::steady_clock::time_point passed_at(aclrtEvent handle, const char* name) {
  const auto gate = resolve_event(handle, name)->recorded();
  if (gate == nullptr || !gate->is_open()) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID,
                  text(name, ": ", gate == nullptr ? "not recorded" : "not complete",
                       ", needs to be recorded and passed by its stream"));
  }
  return gate->opened_at();
}

}  // namespace

std::shared_ptr<Gate> Event::recorded() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return recorded_;
}

void Event::set_recorded(std::shared_ptr<Gate> gate) {
  std::lock_guard<std::mutex> lock(mutex_);
  recorded_.swap(gate);
}

void Event::reset(const std::shared_ptr<Gate>& gate) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (recorded_ == gate) recorded_ = nullptr;
}

HandleTable<Event>& events() {
  static auto& table = *new HandleTable<Event>(HandleKind::kEvent);
  return table;
}

}  // namespace moe::acl

using moe::acl::create_event;
using moe::acl::events;
using moe::acl::Failure;
using moe::acl::guarded;
using moe::acl::passed_at;
using moe::acl::record_event;
using moe::acl::require_argument;
using moe::acl::require_context;
using moe::acl::resolve_event;
using moe::acl::resolve_stream;
using moe::acl::synchronize_event;
using moe::acl::text;

aclError aclrtCreateEvent(aclrtEvent* event) {
  return guarded([&] { create_event(event); });
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  return guarded([&] {
    require_argument(event, "event");
    constexpr uint32_t kKnown =
        ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE;
    if ((flag & ~kKnown) != 0) {
      throw Failure(ACL_ERROR_INVALID_PARAM,
                    text("flag: got ", flag, ", needs a union of 1, 2, 8"));
    }
    create_event(event);
  });
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  return guarded([&] {
    require_argument(event, "event");
    require_context();
    if (events().erase(event) == nullptr) resolve_event(event, "event");
  });
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  return guarded([&] {
    require_argument(event, "event");
    const auto on = resolve_stream(stream);
    record_event(*resolve_event(event, "event"), *on);
  });
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  return guarded([&] {
    require_argument(event, "event");
    const auto on = resolve_stream(stream);
    const auto object = resolve_event(event, "event");
    on->queue().push([object, gate = object->recorded()] { object->reset(gate); });
  });
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  return guarded([&] {
    require_argument(event, "event");
    const auto on = resolve_stream(stream);
    if (auto gate = resolve_event(event, "event")->recorded()) on->queue().push_gate(gate);
  });
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return guarded([&] { synchronize_event(event, -1); });
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  return guarded([&] { synchronize_event(event, timeout); });
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  return guarded([&] {
    require_argument(event, "event");
    require_argument(status, "status");
    require_context();
    const auto gate = resolve_event(event, "event")->recorded();
    *status = gate != nullptr && gate->is_open() ? ACL_EVENT_RECORDED_STATUS_COMPLETE
                                                 : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  });
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  return guarded([&] {
    require_argument(ms, "ms");
    require_argument(startEvent, "startEvent");
    require_argument(endEvent, "endEvent");
    require_context();
    const auto start = passed_at(startEvent, "startEvent");
    const auto elapsed = passed_at(endEvent, "endEvent") - start;
    *ms = std::chrono::duration<float, std::milli>(elapsed).count();
  });
}
