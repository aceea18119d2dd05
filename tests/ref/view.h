// A strided tensor of one or two dimensions, as the oracles read it.
#pragma once

#include <cstdint>

#include "ref/dtypes.h"

namespace ref {

// Element (i, j) lies `offset + i * stride + j * inner_stride` elements behind `data`.
struct View {
  const void* data = nullptr;
  Type type = Type::kF32;
  int64_t stride = 1;
  int64_t inner_stride = 1;
  int64_t offset = 0;

  int64_t at(int64_t i, int64_t j = 0) const { return offset + i * stride + j * inner_stride; }
};

}  // namespace ref
