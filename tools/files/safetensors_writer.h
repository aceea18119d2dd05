// Writes .safetensors files.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "files/stored_tensor.h"

namespace moe::tools {

// All bytes before the data, which starts at a multiple of 64, and where each tensor's bytes begin
// in the whole file. Wider elements come first, so that each tensor is aligned to its own. The
// tensors' `bytes` are not looked at.
struct SafetensorsLayout {
  std::string preamble;
  std::vector<size_t> begins;  // in the order of the tensors given
  size_t num_bytes;            // of the whole file
};

// Throws FileError (for `path`) where the format lacks a dtype or a name comes twice.
SafetensorsLayout lay_out_safetensors(std::span<const StoredTensor> tensors,
                                      const std::string& path);

}  // namespace moe::tools
