// Reads .safetensors files.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "files/stored_tensor.h"

namespace moe::tools {

struct SafetensorsContent {
  std::vector<StoredTensor> tensors;            // by place in the file
  std::map<std::string, std::string> metadata;  // what the file says of itself
};

// What a whole file's bytes hold, and the tensors point into. `path` is for messages. Throws
// FileError for whatever breaks the format: a header past its limits or not the JSON it has to be,
// names that come twice, ranges that overlap, leave a hole, or do not fit the shape.
SafetensorsContent read_safetensors(std::span<const std::byte> file, const std::string& path);

}  // namespace moe::tools
