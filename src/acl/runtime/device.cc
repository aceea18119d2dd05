#include "acl/runtime/device.h"

#include <utility>

#include "acl/acl.h"
#include "acl/runtime/env.h"
#include "acl/runtime/error.h"
#include "acl/runtime/gate.h"
#include "acl/runtime/stream.h"

namespace moe::acl {
namespace {

struct Device {
  std::mutex mutex;
  bool initialized = false;
  bool finalized = false;
  int num_sets = 0;
  std::shared_ptr<Context> primary;
};
Device& device() {
  static Device& instance = *new Device;
  return instance;
}

// Handles, not objects: see ThreadErrors in error.cc for why nothing here has a destructor.
struct ThreadBinding {
  aclrtContext current;
  aclrtContext primary;  // the one that num_sets counts for
  int num_sets;
};
thread_local constinit ThreadBinding binding{};

void require_device(int32_t device_id) {
  if (device_id != 0) {
    throw Failure(ACL_ERROR_RT_INVALID_DEVICEID,
                  text("deviceId: got ", device_id, ", needs 0, the only device"));
  }
}

void require_good_environment() {
  if (!environment().problem.empty()) {
    throw Failure(ACL_ERROR_INVALID_PARAM, environment().problem);
  }
}

std::shared_ptr<Context> make_context(bool primary) {
  auto context = std::make_shared<Context>(primary);
  context->set_handle(contexts().insert(context));
  return context;
}

std::shared_ptr<Context> require_live(aclrtContext handle) {
  require_argument(handle, "context");
  auto context = contexts().find(handle);
  if (context == nullptr) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID,
                  text("context: ", hex(handle), " is destroyed or no context"));
  }
  return context;
}

// Waits until a context may end: its default stream has nothing left to do.
void drain(const std::shared_ptr<Stream>& stream) {
  if (stream == nullptr) return;
  if (stream->queue().wait(deadline_after(-1)) == WaitResult::kStuck) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID,
                  "context: its default stream waits for a callback that only this thread runs");
  }
}

// The end of a context that no handle names any more.
void close(Context& context) {
  const auto stream = context.close();
  if (stream != nullptr) end_stream(*stream);
}

void set_device() {
  Device& d = device();
  std::lock_guard<std::mutex> lock(d.mutex);
  if (d.num_sets == 0) d.primary = make_context(true);
  ++d.num_sets;
  const aclrtContext primary = d.primary->handle();
  binding.num_sets = binding.primary == primary ? binding.num_sets + 1 : 1;
  binding.current = binding.primary = primary;
}

std::shared_ptr<Context> primary_if_last() {
  Device& d = device();
  std::lock_guard<std::mutex> lock(d.mutex);
  if (d.num_sets == 0) {
    throw Failure(ACL_ERROR_RT_CONTEXT_NULL, "deviceId: the device is not set, or already reset");
  }
  return d.num_sets == 1 ? d.primary : nullptr;
}

// One aclrtSetDevice less; the context when that was the last one.
std::shared_ptr<Context> count_reset() {
  Device& d = device();
  std::lock_guard<std::mutex> lock(d.mutex);
  if (d.num_sets == 0) return nullptr;
  const aclrtContext primary = d.primary->handle();
  if (binding.primary == primary && binding.num_sets > 0 && --binding.num_sets == 0 &&
      binding.current == primary) {
    binding.current = nullptr;
  }
  if (--d.num_sets > 0) return nullptr;
  contexts().erase(primary);
  return std::exchange(d.primary, nullptr);
}

void reset_device() {
  if (const auto last = primary_if_last()) drain(last->peek_default_stream());
  if (const auto ended = count_reset()) close(*ended);
}

void destroy_context(aclrtContext handle) {
  const auto context = require_live(handle);
  if (context->primary()) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID,
                  "context: got the one that aclrtSetDevice made, which aclrtResetDevice ends");
  }
  drain(context->peek_default_stream());
  if (contexts().erase(handle) == nullptr) require_live(handle);
  close(*context);
}

}  // namespace

std::shared_ptr<Stream> Context::default_stream() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) throw Failure(ACL_ERROR_RT_CONTEXT_NULL, "context: it has just been destroyed");
  if (default_stream_ == nullptr) default_stream_ = std::make_shared<Stream>(handle_);
  return default_stream_;
}

std::shared_ptr<Stream> Context::peek_default_stream() {
  std::lock_guard<std::mutex> lock(mutex_);
  return default_stream_;
}

std::shared_ptr<Stream> Context::close() {
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  return std::exchange(default_stream_, nullptr);
}

HandleTable<Context>& contexts() {
  static auto& table = *new HandleTable<Context>(HandleKind::kContext);
  return table;
}

std::shared_ptr<Context> current_context() {
  auto context = contexts().find(binding.current);
  if (context == nullptr) {
    throw Failure(ACL_ERROR_RT_CONTEXT_NULL,
                  "context: none on this thread, needs aclrtSetDevice or aclrtSetCurrentContext");
  }
  return context;
}

void require_context() { current_context(); }

std::shared_ptr<Stream> resolve_stream(aclrtStream stream) {
  const auto context = current_context();
  if (stream == nullptr) return context->default_stream();
  auto object = streams().find(stream);
  if (object == nullptr) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID,
                  text("stream: ", hex(stream), " is destroyed or no stream"));
  }
  if (object->context() != context->handle()) {
    throw Failure(ACL_ERROR_RT_STREAM_CONTEXT,
                  text("stream: ", hex(stream), " belongs to another context than the current"));
  }
  return object;
}

}  // namespace moe::acl

using moe::acl::binding;
using moe::acl::current_context;
using moe::acl::destroy_context;
using moe::acl::device;
using moe::acl::Failure;
using moe::acl::guarded;
using moe::acl::make_context;
using moe::acl::require_argument;
using moe::acl::require_context;
using moe::acl::require_device;
using moe::acl::require_good_environment;
using moe::acl::require_live;
using moe::acl::reset_device;
using moe::acl::set_device;
using moe::acl::synchronize_all_streams;

aclError aclInit(const char*) {
  return guarded([] {
    require_good_environment();
    std::lock_guard<std::mutex> lock(device().mutex);
    if (std::exchange(device().initialized, true)) {
      throw Failure(ACL_ERROR_REPEAT_INITIALIZE, "aclInit: called before, which is harmless");
    }
  });
}

aclError aclFinalize() {
  return guarded([] {
    std::lock_guard<std::mutex> lock(device().mutex);
    if (std::exchange(device().initialized, false)) {
      device().finalized = true;
    } else if (device().finalized) {
      throw Failure(ACL_ERROR_REPEAT_FINALIZE, "aclFinalize: called before");
    } else {
      throw Failure(ACL_ERROR_UNINITIALIZE, "aclFinalize: needs aclInit first");
    }
  });
}

aclError aclrtSetDevice(int32_t deviceId) {
  return guarded([&] {
    require_device(deviceId);
    require_good_environment();
    set_device();
  });
}

aclError aclrtResetDevice(int32_t deviceId) {
  return guarded([&] {
    require_device(deviceId);
    reset_device();
  });
}

aclError aclrtGetDevice(int32_t* deviceId) {
  return guarded([&] {
    require_argument(deviceId, "deviceId");
    require_context();
    *deviceId = 0;
  });
}

aclError aclrtSynchronizeDevice() {
  return guarded([] {
    require_context();
    synchronize_all_streams();
  });
}

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  return guarded([&] {
    require_argument(context, "context");
    require_device(deviceId);
    require_good_environment();
    *context = binding.current = make_context(false)->handle();
  });
}

aclError aclrtDestroyContext(aclrtContext context) {
  return guarded([&] { destroy_context(context); });
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  return guarded([&] { binding.current = require_live(context)->handle(); });
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  return guarded([&] {
    require_argument(context, "context");
    *context = current_context()->handle();
  });
}
