// DLPack's dtypes and TensorDesc's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dlpack.h"
#include "moe/tensor.h"

namespace moe::python {

inline DLDataType to_dlpack(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * dtype_bytes(dtype));
  if (dtype == DType::kBF16) return {kDLBfloat, bits, 1};
  const bool is_int = dtype == DType::kI32 || dtype == DType::kI64;
  return {is_int ? kDLInt : kDLFloat, bits, 1};
}

// Whether TensorDesc knows the dtype.
inline bool from_dlpack(const DLDataType& type, DType& dtype) {
  for (const DType candidate :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI32, DType::kI64}) {
    const DLDataType wanted = to_dlpack(candidate);
    if (type.code == wanted.code && type.bits == wanted.bits && type.lanes == 1) {
      dtype = candidate;
      return true;
    }
  }
  return false;
}

// Bytes of a contiguous tensor that a plan has accepted: they fit.
inline size_t bytes_of(DType dtype, std::span<const int64_t> shape) {
  auto num_bytes = static_cast<size_t>(dtype_bytes(dtype));
  for (const int64_t size : shape) num_bytes *= static_cast<size_t>(size);
  return num_bytes;
}

}  // namespace moe::python
