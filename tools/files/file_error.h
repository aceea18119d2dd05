// What the file layer throws.
#pragma once

#include <stdexcept>
#include <string>

#include "files/text.h"

namespace moe::tools {

// A file that cannot be read or written, or does not hold what its format asks for. One line:
// "path: what it got, what it needs".
class FileError : public std::runtime_error {
 public:
  FileError(const std::string& path, const std::string& problem)
      : std::runtime_error((path.empty() ? quoted(path) : printable(path)) + ": " + problem) {}
};

}  // namespace moe::tools
