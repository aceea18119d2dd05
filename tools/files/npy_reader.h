// Reads .npy files, versions 1, 2 and 3.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "files/stored_tensor.h"

namespace moe::tools {

// The tensor in a whole file's bytes, which it points into. `path` is for messages. Throws
// FileError for whatever is not exactly one array of plain little-endian elements. Both orders of
// elements are taken.
StoredTensor read_npy(std::span<const std::byte> file, const std::string& path);

}  // namespace moe::tools
