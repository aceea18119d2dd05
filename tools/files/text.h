// Building messages, and showing names from files that nobody vouches for.
#pragma once

#include <cstdint>
#include <span>
#include <sstream>
#include <string>

namespace moe::tools {

// The arguments one after another as a stream would write them.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

// "[4, 2]"
std::string shape_text(std::span<const int64_t> shape);

// `name` with control characters as \x1b, cut where it is long: a file's names must not be able to
// send commands to a terminal.
std::string printable(const std::string& name);

// The same between quotation marks.
std::string quoted(const std::string& name);

// With at most two digits behind the point.
std::string decimal(double value);

// 7340032 as "7.3 MB".
std::string bytes_text(double bytes);

}  // namespace moe::tools
