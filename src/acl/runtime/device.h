// The one device, its contexts, and what is current on a thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "acl/acl_base.h"
#include "acl/runtime/handles.h"

namespace moe::acl {

class Stream;

// A context: its handle, and the stream that a null stream means.
class Context {
 public:
  explicit Context(bool primary) : primary_(primary) {}

  bool primary() const { return primary_; }  // made by aclrtSetDevice
  aclrtContext handle() const { return handle_; }
  void set_handle(aclrtContext handle) { handle_ = handle; }  // before any other thread sees it

  // Made at its first use. A Failure when a thread cannot be started.
  std::shared_ptr<Stream> default_stream();
  // Null when it was never used.
  std::shared_ptr<Stream> peek_default_stream();
  // Ends its use; returns what peek_default_stream would have.
  std::shared_ptr<Stream> close();

 private:
  const bool primary_;
  aclrtContext handle_ = nullptr;
  std::mutex mutex_;
  std::shared_ptr<Stream> default_stream_;
  bool closed_ = false;
};

HandleTable<Context>& contexts();

// The calling thread's context, or a Failure with ACL_ERROR_RT_CONTEXT_NULL.
std::shared_ptr<Context> current_context();
void require_context();

// The stream behind a handle, for use by work: null means the current context's default stream. A
// Failure: ACL_ERROR_RT_CONTEXT_NULL without a context, ACL_ERROR_RT_PARAM_INVALID for a destroyed
// or foreign handle, ACL_ERROR_RT_STREAM_CONTEXT for a stream of another context.
std::shared_ptr<Stream> resolve_stream(aclrtStream stream);

}  // namespace moe::acl
