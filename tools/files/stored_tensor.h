// A tensor as a file holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "files/dtypes.h"

namespace moe::tools {

struct StoredTensor {
  std::string name;  // empty in .npy files
  FileDType dtype = FileDType::kF32;
  std::vector<int64_t> shape;
  bool fortran_order = false;        // the first index runs fastest
  std::span<const std::byte> bytes;  // of the whole tensor
};

inline int64_t num_elements(const StoredTensor& tensor) {
  return num_elements(tensor.dtype, tensor.bytes);
}

}  // namespace moe::tools
