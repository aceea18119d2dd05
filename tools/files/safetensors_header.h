// The JSON in the header of a .safetensors file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "files/dtypes.h"

namespace moe::tools {

struct SafetensorsEntry {
  std::string name;
  FileDType dtype = FileDType::kF32;
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;  // bytes behind the header
};

// The entries as they stand in the header; what the file says of itself (__metadata__) is checked
// and left out. Throws FileError (for `path`) unless the text is one JSON object of such entries,
// each name once. Nothing deeper than the format is entered, and nothing is built for it.
std::vector<SafetensorsEntry> parse_safetensors_header(std::string_view json,
                                                       const std::string& path);

}  // namespace moe::tools
