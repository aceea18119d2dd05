// The Python dictionary in the header of a .npy file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moe::tools {

struct NpyHeader {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Throws FileError (for `path`) unless the text is a dictionary of exactly these three entries.
NpyHeader parse_npy_header(std::string_view header, const std::string& path);

}  // namespace moe::tools
