// Writes .npy files, as NumPy itself would.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "files/dtypes.h"

namespace moe::tools {

// All bytes before the data. Throws FileError (for `path`) where the format lacks the dtype.
std::string npy_preamble(FileDType dtype, std::span<const int64_t> shape, const std::string& path);

}  // namespace moe::tools
