// How an eager call gets to an operator: around PyTorch's dispatcher, where nobody looks on.
#pragma once

#include <nanobind/nanobind.h>

namespace moe::python {

namespace nb = nanobind;

enum class TorchRoad {
  kDispatcher,  // somebody looks on, or an argument is nothing ordinary
  kTransform,   // torch.func
  kAutograd,    // ordinary CPU tensors of the right kinds, one of which requires a gradient
  kDirect,      // the same, and there is no gradient to record
};

// Of a call with floats, indices, floats or None, and then more of these, or numbers.
int torch_road(nb::args args);

}  // namespace moe::python
