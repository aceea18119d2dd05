// Building messages, and showing names from files that nobody vouches for.
#pragma once

#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

namespace moe::tools {

// The arguments one after another as a stream would write them.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

// "[4, 2]", cut where it is long.
std::string shape_text(std::span<const int64_t> shape);

// `words` with whatever is no plain text as \x1b: control characters, those that turn the direction
// of writing round, bytes that are no UTF-8. A file's names must not be able to send commands to a
// terminal. Once done, doing it again changes nothing.
std::string harmless(std::string_view words);

// The same, cut where it is long.
std::string printable(const std::string& name);

// The same between quotation marks.
std::string quoted(const std::string& name);

// With at most two digits behind the point.
std::string decimal(double value);

// 7340032 as "7.3 MB".
std::string bytes_text(double bytes);

}  // namespace moe::tools
