// Reads .safetensors files.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "files/stored_tensor.h"

namespace moe::tools {

// The tensors of a whole file's bytes, which they point into, by their places there. `path` is for
// messages. Throws FileError for whatever breaks the format: a header past its limits or not the
// JSON it has to be, names that come twice, ranges that overlap, leave a hole, or do not fit the
// shape.
std::vector<StoredTensor> read_safetensors(std::span<const std::byte> file,
                                           const std::string& path);

}  // namespace moe::tools
