#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "files/file_error.h"

namespace moe::tools {

void Output::finish() {
  // Names come from files: what is no UTF-8 must not end the program.
  const std::string all =
      json ? facts.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : lines_;
  const bool written = std::fwrite(all.data(), 1, all.size(), stdout) == all.size();
  if (!written || std::fflush(stdout) != 0) {
    throw FileError("standard output", text("cannot be written: ", std::strerror(errno)));
  }
}

}  // namespace moe::tools
