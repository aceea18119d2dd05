#include "acl/runtime/stream.h"

#include <exception>
#include <utility>
#include <vector>

#include "acl/acl_rt.h"
#include "acl/runtime/device.h"
#include "acl/runtime/env.h"
#include "acl/runtime/error.h"
#include "acl/runtime/memory.h"
#include "acl/runtime/report.h"

namespace moe::acl {
namespace {

void require_done(WaitResult result, int32_t timeout_ms) {
  if (result == WaitResult::kTimeout) {
    throw Failure(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                  text("stream: still busy after ", timeout_ms, " ms"));
  }
  if (result == WaitResult::kStuck) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID,
                  "stream: it waits for a callback that only this thread runs");
  }
}

void create_stream(aclrtStream* stream) {
  require_argument(stream, "stream");
  const auto context = current_context();
  *stream = streams().insert(std::make_shared<Stream>(context->handle()));
}

void destroy_stream(aclrtStream handle) {
  require_argument(handle, "stream");
  require_context();
  const auto unknown = Failure(ACL_ERROR_RT_PARAM_INVALID,
                               text("stream: ", hex(handle), " is destroyed or no stream"));
  const auto stream = streams().find(handle);
  if (stream == nullptr) throw unknown;
  require_done(stream->queue().wait(deadline_after(-1)), -1);
  if (streams().erase(handle) == nullptr) throw unknown;
  end_stream(*stream);
}

}  // namespace

Stream::Stream(aclrtContext context) : context_(context), queue_(std::make_shared<Queue>()) {
  queue_->start();
}

Stream::~Stream() { queue_->shut_down(); }

void Stream::enqueue(std::function<void()> work) {
  queue_->push(std::move(work));
  // Where waiting would not end, because the stream needs this thread, the launch stays queued.
  if (environment().launch_blocking) queue_->wait(deadline_after(-1));
}

void Stream::synchronize(int32_t timeout_ms) {
  require_done(queue_->wait(deadline_after(timeout_ms)), timeout_ms);
  queue_->throw_failure();
  check_all_blocks();
}

HandleTable<Stream>& streams() {
  static auto& table = *new HandleTable<Stream>(HandleKind::kStream);
  return table;
}

void synchronize_all_streams() {
  const auto queues = live_queues();
  for (const auto& queue : queues) require_done(queue->wait(deadline_after(-1)), -1);
  for (const auto& queue : queues) queue->throw_failure();
  check_all_blocks();
}

void end_stream(Stream& stream) {
  // What another thread queued between the last wait and the end of the handle.
  stream.queue().wait(deadline_after(-1));
  forget_subscription(&stream.queue());
  stream.queue().throw_failure();
}

}  // namespace moe::acl

using moe::acl::create_stream;
using moe::acl::deadline_after;
using moe::acl::destroy_stream;
using moe::acl::guarded;
using moe::acl::require_argument;
using moe::acl::resolve_stream;

aclError aclrtCreateStream(aclrtStream* stream) {
  return guarded([&] { create_stream(stream); });
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t, uint32_t) {
  return guarded([&] { create_stream(stream); });
}

aclError aclrtDestroyStream(aclrtStream stream) {
  return guarded([&] { destroy_stream(stream); });
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  return guarded([&] { resolve_stream(stream)->synchronize(-1); });
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  return guarded([&] {
    deadline_after(timeout);  // an argument check, so it comes before the context's
    resolve_stream(stream)->synchronize(timeout);
  });
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  return guarded([&] {
    require_argument(status, "status");
    const bool idle = resolve_stream(stream)->queue().idle();
    *status = idle ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  });
}
