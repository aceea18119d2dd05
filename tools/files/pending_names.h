// Names of files and folders that must not stay when the program is interrupted. A signal handler
// reads them: no locks, no allocation.
#pragma once

#include <cstddef>
#include <string>

namespace moe::tools {

// Keeps `path` until it is released; throws FileError when there are too many.
size_t register_pending(const std::string& path);
void release_pending(size_t slot) noexcept;

}  // namespace moe::tools
