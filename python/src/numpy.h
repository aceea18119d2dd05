// NumPy's own arrays, through its C API: the one file pair that knows it.
#pragma once

#include <nanobind/nanobind.h>

#include <span>

#include "moe/tensor.h"

namespace moe::python {

namespace nb = nanobind;

// Imports NumPy's C API; throws ImportError where NumPy is missing or too old. To be called once,
// before all others.
void import_numpy();

bool is_numpy(nb::handle object);

// Whether it carries a mask, which memory alone does not show.
bool is_masked(nb::handle object);

struct NumpyView {
  void* data;
  int num_dims;
  const int64_t* shape;
  const int64_t* byte_strides;
  bool writeable;
};
NumpyView view_numpy(nb::handle array);

// Whether the dtype is one that TensorDesc knows (bfloat16: that of ml_dtypes), in native order.
bool numpy_dtype(nb::handle array, DType& dtype);
// "int8", ">f4": for messages.
std::string numpy_dtype_text(nb::handle array);

// A fresh array, its elements not set. bfloat16 imports ml_dtypes.
nb::object new_numpy(DType dtype, std::span<const int64_t> shape, void*& data);

}  // namespace moe::python
