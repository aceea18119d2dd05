// Stored tensors as plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "files/stored_tensor.h"

namespace moe::tools {

// The bytes in row-major order: the file's own, or a copy in `storage` where the file has the other
// order.
std::span<const std::byte> row_major(const StoredTensor& tensor, std::vector<std::byte>& storage);

// An int32 or int64 tensor's elements in row-major order. Throws UsageError for another type.
std::vector<int64_t> integers(const StoredTensor& tensor);

}  // namespace moe::tools
