// Building messages.
#pragma once

#include <locale>
#include <sstream>
#include <string>

namespace moe {

// The arguments one after another as a stream would write them.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());  // no commas in numbers, whatever the program's locale
  (out << ... << parts);
  return std::move(out).str();
}

}  // namespace moe
