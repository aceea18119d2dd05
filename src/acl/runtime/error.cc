#include "acl/runtime/error.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "acl/acl_rt.h"
#include "acl/runtime/enums.h"
#include "moe/error.h"

namespace moe::acl {
namespace {

// Trivially destructible, because the main thread's thread-local objects end before static
// destructors run, and those may still call us.
struct ThreadErrors {
  static constexpr size_t kMaxLength = 2047;
  char newest[kMaxLength + 1];
  char returned[kMaxLength + 1];
  bool has_message;
  int last_code;
};
thread_local constinit ThreadErrors errors{};

aclnnStatus aclnn_code(int code) {
  const bool from_runtime = code < ACLNN_ERR_PARAM_NULLPTR || code == ACL_ERROR_BAD_ALLOC ||
                            code == ACL_ERROR_INTERNAL_ERROR || code == ACL_ERROR_FAILURE ||
                            code == ACL_ERROR_RT_MEMORY_ALLOCATION;
  if (!from_runtime) return code;
  const bool bad_handle = code == ACL_ERROR_RT_PARAM_INVALID || code == ACL_ERROR_INVALID_PARAM;
  return bad_handle ? ACLNN_ERR_PARAM_INVALID : ACLNN_ERR_RUNTIME_ERROR;
}

}  // namespace

std::string hex(const void* address) {
  char digits[2 + 2 * sizeof(void*) + 1];
  std::snprintf(digits, sizeof(digits), "%#zx", reinterpret_cast<size_t>(address));
  return digits;
}

void set_message(std::string_view message) noexcept {
  const size_t length = std::min(message.size(), ThreadErrors::kMaxLength);
  std::memcpy(errors.newest, message.data(), length);
  errors.newest[length] = '\0';
  errors.has_message = true;
}

int fail(int code, std::string_view message) noexcept {
  set_message(message);
  errors.last_code = code;
  return code;
}

aclError acl_code_of_exception() noexcept {
  try {
    throw;
  } catch (const Failure& e) {
    return fail(e.code(), e.what());
  } catch (const InvalidArgument& e) {
    return fail(ACL_ERROR_INVALID_PARAM, e.what());
  } catch (const std::bad_alloc&) {
    return fail(ACL_ERROR_BAD_ALLOC, "no host memory left");
  } catch (const std::exception& e) {
    return fail(ACL_ERROR_INTERNAL_ERROR, e.what());
  } catch (...) {
    return fail(ACL_ERROR_INTERNAL_ERROR, "an exception of unknown type");
  }
}

aclnnStatus aclnn_code_of_exception() noexcept {
  try {
    throw;
  } catch (const Failure& e) {
    return fail(aclnn_code(e.code()), e.what());
  } catch (const NullArgument& e) {
    return fail(ACLNN_ERR_PARAM_NULLPTR, e.what());
  } catch (const InvalidArgument& e) {
    return fail(ACLNN_ERR_PARAM_INVALID, e.what());
  } catch (const std::bad_alloc&) {
    return fail(ACLNN_ERR_INNER, "no host memory left");
  } catch (const std::exception& e) {
    return fail(ACLNN_ERR_INNER, e.what());
  } catch (...) {
    return fail(ACLNN_ERR_INNER, "an exception of unknown type");
  }
}

}  // namespace moe::acl

const char* aclGetRecentErrMsg() {
  using moe::acl::errors;
  if (!errors.has_message) return nullptr;
  errors.has_message = false;
  std::memcpy(errors.returned, errors.newest, sizeof(errors.returned));
  return errors.returned;
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  if (moe::acl::number_of(level) != ACL_RT_THREAD_LEVEL) {
    moe::acl::set_message("level: got an unknown one, needs ACL_RT_THREAD_LEVEL (0)");
    return ACL_ERROR_INVALID_PARAM;
  }
  return moe::acl::errors.last_code;
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
  const aclError code = aclrtPeekAtLastError(level);
  if (moe::acl::number_of(level) == ACL_RT_THREAD_LEVEL) moe::acl::errors.last_code = ACL_SUCCESS;
  return code;
}
