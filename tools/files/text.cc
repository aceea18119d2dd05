#include "files/text.h"

#include <cstdio>

namespace moe::tools {
namespace {

constexpr size_t kLongestName = 120;

}  // namespace

std::string shape_text(std::span<const int64_t> shape) {
  std::string out = "[";
  for (int64_t size : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(size);
  return out + "]";
}

std::string printable(const std::string& name) {
  std::string out;
  for (const char c : name.substr(0, kLongestName)) {
    const auto byte = static_cast<unsigned char>(c);
    char escaped[8];
    if (byte < 0x20 || byte == 0x7F) {
      std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
      out += escaped;
    } else {
      out += c;
    }
  }
  return name.size() > kLongestName ? out + "..." : out;
}

std::string quoted(const std::string& name) { return text('"', printable(name), '"'); }

std::string decimal(double value) {
  char out[32];
  std::snprintf(out, sizeof out, "%.2f", value);
  std::string digits = out;
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

std::string bytes_text(double bytes) {
  static constexpr const char* kUnits[] = {"bytes", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; bytes >= 999.5 && unit < 4; bytes /= 1000) ++unit;
  char out[32];
  const bool exact = unit == 0 || bytes >= 99.5;
  std::snprintf(out, sizeof out, exact ? "%.0f %s" : "%.3g %s", bytes, kUnits[unit]);
  return out;
}

}  // namespace moe::tools
