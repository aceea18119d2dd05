// What a verb says: lines for people, or one JSON object for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "files/text.h"

namespace moe::tools {

using Json = nlohmann::ordered_json;

class Output {
 public:
  bool json = false;   // --json
  bool quiet = false;  // --quiet

  // A line for people.
  template <class... Parts>
  void line(const Parts&... parts) {
    if (!json && !quiet) lines_ += text(parts..., "\n");
  }
  // Facts for programs.
  Json facts = Json::object();

  // Writes the lines, or the object, to standard output. Throws FileError where that fails.
  void finish();

 private:
  std::string lines_;
};

}  // namespace moe::tools
