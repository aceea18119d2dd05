// From exceptions to codes and messages: the barrier around every exported function.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "acl/acl_base.h"
#include "aclnn/aclnn_base.h"

namespace moe::acl {

// An error that knows its code. what() is the message of aclGetRecentErrMsg.
class Failure : public std::runtime_error {
 public:
  Failure(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  int code() const noexcept { return code_; }

 private:
  int code_;
};

// The parts as one string: text("size: got ", 3, ", needs ", 4).
template <class... Parts>
std::string text(const Parts&... parts) {
  std::string result;
  const auto add = [&result](const auto& part) {
    if constexpr (std::is_convertible_v<decltype(part), std::string_view>) {
      result += std::string_view(part);
    } else {
      result += std::to_string(part);
    }
  };
  (add(parts), ...);
  return result;
}

// An address as programs print it: 0x7f00....
std::string hex(const void* address);

// Makes `message` this thread's newest. Never allocates; usable in static destructors.
void set_message(std::string_view message) noexcept;

// Sets the message, remembers the code for aclrtGetLastError, and returns it.
int fail(int code, std::string_view message) noexcept;

// Inside a catch block: the code of the exception in flight, its message set.
//   Failure: its code; moe::NullArgument and moe::InvalidArgument: ACL_ERROR_INVALID_PARAM;
//   std::bad_alloc: ACL_ERROR_BAD_ALLOC; anything else: ACL_ERROR_INTERNAL_ERROR.
aclError acl_code_of_exception() noexcept;
// The same for functions that return aclnnStatus.
//   Failure: its code, where it is an aclnn code; of the runtime's codes a bad handle
//   (ACL_ERROR_RT_PARAM_INVALID, ACL_ERROR_INVALID_PARAM) becomes ACLNN_ERR_PARAM_INVALID, the rest
//   (no context, a stream of another context) ACLNN_ERR_RUNTIME_ERROR;
//   moe::NullArgument: ACLNN_ERR_PARAM_NULLPTR; moe::InvalidArgument: ACLNN_ERR_PARAM_INVALID;
//   anything else: ACLNN_ERR_INNER.
aclnnStatus aclnn_code_of_exception() noexcept;

// The barrier of acl and aclrt functions: `body` returns nothing and throws on failure.
template <class Body>
aclError guarded(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return ACL_SUCCESS;
  } catch (...) {
    return acl_code_of_exception();
  }
}

// The barrier of functions that return aclnnStatus, under the same rule.
template <class Body>
aclnnStatus guarded_aclnn(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return ACLNN_SUCCESS;
  } catch (...) {
    return aclnn_code_of_exception();
  }
}

// The barrier of functions that return a handle: null on failure, with a message.
template <class Body>
auto guarded_handle(Body&& body) noexcept -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    acl_code_of_exception();
    return nullptr;
  }
}

// ACL_ERROR_INVALID_PARAM for a null pointer argument of an acl function.
inline void require_argument(const void* pointer, const char* name) {
  if (pointer == nullptr) {
    throw Failure(ACL_ERROR_INVALID_PARAM, text(name, ": null, needs a pointer"));
  }
}

}  // namespace moe::acl
