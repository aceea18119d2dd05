// PyTorch's tensors through DLPack's C exchange API, without importing PyTorch: a tensor can only
// be here where somebody else has.
#pragma once

#include <nanobind/nanobind.h>

#include <span>

#include "dlpack.h"
#include "moe/tensor.h"

namespace moe::python {

namespace nb = nanobind;

// Whether the object is a tensor of a PyTorch that has the exchange API.
bool is_torch(nb::handle object);

// Describes the tensor's memory, which lives as long as `object` does. ValueError where it has none
// that the CPU can read as it stands.
DLTensor view_torch(nb::handle object, const char* name);

// Whether the tensor has memory that the CPU can read as it stands, and elements of a known kind.
bool torch_cpu_dtype(nb::handle object, DType& dtype);

bool requires_grad(nb::handle object);

// Whether it carries a tangent of forward-mode differentiation.
bool has_tangent(nb::handle object);

// Tells autograd, which refuses to go back through what has changed since it was saved.
void mark_written(nb::handle tensor);

// A fresh tensor, its elements not set.
nb::object new_torch(DType dtype, std::span<const int64_t> shape, void*& data);

}  // namespace moe::python
