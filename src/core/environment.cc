#include "core/environment.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace moe {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int positive_number(const std::string& value) {
  int number = 0;
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  return error == std::errc() && rest == end && number > 0 ? number : 0;
}

}  // namespace

const std::string& forced_kernel() {
  static const std::string value = variable("MOE_KERNEL");
  return value;
}

int default_num_threads() {
  static const int value = positive_number(variable("MOE_NUM_THREADS"));
  return value;
}

}  // namespace moe
