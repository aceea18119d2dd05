#include <atomic>

#include "core/environment.h"
#include "core/text.h"
#include "core/threads.h"
#include "moe/engine.h"
#include "moe/error.h"

namespace moe {
namespace {

std::atomic<int> thread_limit{0};

}  // namespace

Call::~Call() = default;
Stream::~Stream() = default;

void set_num_threads(int n) { thread_limit.store(n < 1 ? 0 : n); }

int num_threads() {
  if (const int limit = thread_limit.load()) return limit;
  if (const int limit = default_num_threads()) return limit;
  return available_threads();
}

void BoundCall::lacks_workspace() const {
  throw NullArgument("workspace", text("null, but needs ", workspace_bytes(), " bytes"));
}

void BoundCall::run(void* workspace, Stream& stream) const {
  if (!workspace && workspace_bytes() > 0) lacks_workspace();
  if (call_) stream.enqueue([call = call_, workspace] { call->run(workspace); });
}

}  // namespace moe
