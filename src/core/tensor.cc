#include "moe/tensor.h"

#include <algorithm>
#include <iterator>

namespace moe {
namespace {

constexpr const char* kDTypeNames[] = {"float32", "float16", "bfloat16",
                                       "float64", "int32",   "int64"};

TensorDesc with_shape(DType dtype, std::span<const int64_t> shape) {
  TensorDesc desc;
  desc.dtype = dtype;
  desc.num_dims = static_cast<int>(shape.size());
  std::copy_n(shape.begin(), std::min<size_t>(shape.size(), TensorDesc::kMaxDims),
              desc.shape.begin());
  return desc;
}

}  // namespace

const char* dtype_name(DType dtype) noexcept {
  const auto i = static_cast<size_t>(dtype);
  return i < std::size(kDTypeNames) ? kDTypeNames[i] : "no dtype";
}

TensorDesc TensorDesc::contiguous(DType dtype, std::span<const int64_t> shape) noexcept {
  TensorDesc desc = with_shape(dtype, shape);
  // Unsigned, so that a shape too large for 64 bits wraps here and is rejected by plan().
  uint64_t stride = 1;
  for (int dim = std::min(desc.num_dims, kMaxDims) - 1; dim >= 0; --dim) {
    desc.strides[dim] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(desc.shape[dim]);
  }
  return desc;
}

TensorDesc TensorDesc::contiguous(DType dtype, std::initializer_list<int64_t> shape) noexcept {
  return contiguous(dtype, std::span(shape.begin(), shape.size()));
}

TensorDesc TensorDesc::strided(DType dtype, std::span<const int64_t> shape,
                               std::span<const int64_t> strides, int64_t offset) noexcept {
  TensorDesc desc = with_shape(dtype, shape);
  std::copy_n(strides.begin(), std::min<size_t>({shape.size(), strides.size(), kMaxDims}),
              desc.strides.begin());
  desc.offset = offset;
  return desc;
}

TensorDesc TensorDesc::strided(DType dtype, std::initializer_list<int64_t> shape,
                               std::initializer_list<int64_t> strides, int64_t offset) noexcept {
  return strided(dtype, std::span(shape.begin(), shape.size()),
                 std::span(strides.begin(), strides.size()), offset);
}

}  // namespace moe
