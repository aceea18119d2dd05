#include "acl/runtime/env.h"

#include <cstdlib>
#include <string_view>

#include "acl/runtime/error.h"

namespace moe::acl {
namespace {

// A number from 0 to `most`; unset and empty mean 0.
int read_number(const char* name, int most, std::string& problem) {
  const char* value = std::getenv(name);
  const std::string_view digits = value == nullptr ? "" : value;
  if (digits.empty()) return 0;
  if (digits.size() == 1 && digits[0] >= '0' && digits[0] <= '0' + most) return digits[0] - '0';
  const std::string needs = most == 1 ? "0 or 1" : "0, 1 or 2";
  if (problem.empty()) problem = text(name, ": got \"", digits, "\", needs ", needs);
  return 0;
}

Environment read_environment() {
  Environment result;
  result.launch_blocking = read_number("MOE_ACL_LAUNCH_BLOCKING", 1, result.problem) == 1;
  result.check_indices = read_number("MOE_ACL_CHECK_INDICES", 1, result.problem) == 1;
  result.allow_host_memory = read_number("MOE_ACL_ALLOW_HOST_MEMORY", 1, result.problem) == 1;
  result.guard = read_number("MOE_ACL_GUARD", 2, result.problem);
  return result;
}

}  // namespace

const Environment& environment() {
  static const Environment& instance = *new Environment(read_environment());
  return instance;
}

}  // namespace moe::acl
