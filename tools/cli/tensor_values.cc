#include "cli/tensor_values.h"

#include <cstring>

#include "cli/errors.h"
#include "files/text.h"

namespace moe::tools {
namespace {

template <class T>
std::vector<int64_t> widened(std::span<const std::byte> bytes) {
  std::vector<int64_t> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof value);
    values[i] = value;
  }
  return values;
}

// Steps a row-major index of `shape`.
void advance(std::vector<int64_t>& index, const std::vector<int64_t>& shape) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return;
    index[d] = 0;
  }
}

}  // namespace

std::span<const std::byte> row_major(const StoredTensor& tensor, std::vector<std::byte>& storage) {
  if (!tensor.fortran_order || tensor.shape.size() < 2) return tensor.bytes;
  const auto width = static_cast<size_t>(facts(tensor.dtype).bits / 8);
  storage.resize(tensor.bytes.size());
  std::vector<int64_t> index(tensor.shape.size());
  for (size_t to = 0; to < storage.size(); to += width) {
    size_t from = 0;
    for (size_t d = index.size(); d-- > 0;) {
      from = from * static_cast<size_t>(tensor.shape[d]) + static_cast<size_t>(index[d]);
    }
    std::memcpy(storage.data() + to, tensor.bytes.data() + from * width, width);
    advance(index, tensor.shape);
  }
  return storage;
}

std::vector<int64_t> integers(const StoredTensor& tensor) {
  std::vector<std::byte> storage;
  const auto bytes = row_major(tensor, storage);
  if (tensor.dtype == FileDType::kI32) return widened<int32_t>(bytes);
  if (tensor.dtype == FileDType::kI64) return widened<int64_t>(bytes);
  throw UsageError(
      text(printable(tensor.name), ": ", facts(tensor.dtype).name, ", but needs int32 or int64"));
}

}  // namespace moe::tools
