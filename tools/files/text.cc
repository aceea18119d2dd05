#include "files/text.h"

#include <algorithm>
#include <cstdio>

namespace moe::tools {
namespace {

constexpr size_t kLongestName = 120;
constexpr size_t kMostSizes = 32;

// How many bytes the code point at the start of `words` has; 0 where it is no UTF-8.
size_t utf8_length(std::string_view words) {
  const auto lead = static_cast<unsigned char>(words[0]);
  const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (lead > 0xF4 || length > words.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((words[i] & 0xC0) != 0x80) return 0;
  }
  return length;
}

uint32_t code_point(std::string_view utf8) {
  const auto lead = static_cast<unsigned char>(utf8[0]);
  uint32_t code = utf8.size() == 1 ? lead : lead & (0xFF >> (utf8.size() + 1));
  for (const char c : utf8.substr(1)) code = code << 6 | (c & 0x3F);
  return code;
}

// Not: controls (a terminal obeys those past 0x7F too), ends of lines, the marks that turn the
// direction of writing, surrogates, and what has more bytes than it needs.
bool is_harmless(uint32_t code, size_t length) {
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  return code >= kLeast[length] && code <= 0x10FFFF && code >= 0x20 &&
         !(code >= 0x7F && code < 0xA0) && !(code >= 0x200E && code <= 0x200F) &&
         !(code >= 0x2028 && code <= 0x202E) && !(code >= 0x2066 && code <= 0x2069) &&
         !(code >= 0xD800 && code < 0xE000);
}

std::string hexadecimal(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(c));
    out += escaped;
  }
  return out;
}

// As many whole code points as fit.
std::string_view cut(std::string_view words, size_t most) {
  if (words.size() <= most) return words;
  while (most > 0 && (words[most] & 0xC0) == 0x80) --most;
  return words.substr(0, most);
}

}  // namespace

std::string shape_text(std::span<const int64_t> shape) {
  std::string out = "[";
  for (int64_t size : shape.first(std::min(shape.size(), kMostSizes))) {
    out += (out.size() > 1 ? ", " : "") + std::to_string(size);
  }
  if (shape.size() > kMostSizes) out += text(", ... (", shape.size(), " sizes)");
  return out + "]";
}

std::string harmless(std::string_view words) {
  std::string out;
  while (!words.empty()) {
    const size_t length = utf8_length(words);
    const std::string_view next = words.substr(0, std::max<size_t>(length, 1));
    out +=
        length > 0 && is_harmless(code_point(next), length) ? std::string(next) : hexadecimal(next);
    words.remove_prefix(next.size());
  }
  return out;
}

std::string printable(const std::string& name) {
  return harmless(cut(name, kLongestName)) + (name.size() > kLongestName ? "..." : "");
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
