// Descriptions of tensors: everything but the address of the data. Memory stays the caller's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "moe/export.h"

namespace moe {

enum class DType : uint8_t { kF32, kF16, kBF16, kF64, kI32, kI64 };

// Bytes of one element. A number that names no dtype is rejected by name, and until then has some
// size.
constexpr int64_t dtype_bytes(DType dtype) noexcept {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
  }
  return 1;
}
// "float32", "float16", "bfloat16", "float64", "int32", "int64".
MOE_API const char* dtype_name(DType dtype) noexcept;

// Shape, strides and offset of a tensor. Strides and offset count elements, not bytes. The element
// (i0, i1, ...) lies at data + (offset + i0*strides[0] + i1*strides[1] + ...) * dtype_bytes(dtype).
// A description is plain data: nothing is checked before an operator's plan() sees it.
struct MOE_API TensorDesc {
  static constexpr int kMaxDims = 8;

  DType dtype = DType::kF32;
  int num_dims = 0;  // may exceed kMaxDims: then only the first kMaxDims are kept (no operator
                     // here takes that many, so such a description is rejected by its num_dims)
  std::array<int64_t, kMaxDims> shape{};
  std::array<int64_t, kMaxDims> strides{};
  int64_t offset = 0;

  // Row-major without gaps.
  static TensorDesc contiguous(DType dtype, std::span<const int64_t> shape) noexcept;
  static TensorDesc contiguous(DType dtype, std::initializer_list<int64_t> shape) noexcept;
  // Any strides: `strides` has as many values as `shape`. Stride 0 repeats; negative is rejected
  // by plan().
  static TensorDesc strided(DType dtype, std::span<const int64_t> shape,
                            std::span<const int64_t> strides, int64_t offset = 0) noexcept;
  static TensorDesc strided(DType dtype, std::initializer_list<int64_t> shape,
                            std::initializer_list<int64_t> strides, int64_t offset = 0) noexcept;
};

// A half-open window [begin, end) of global permuted rows: what one expert-parallel rank owns.
struct EpRange {
  int64_t begin = 0;
  int64_t end = 0;
};

}  // namespace moe
