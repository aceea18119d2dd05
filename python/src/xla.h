// The operators as XLA's custom calls, for moe_permute.jax.
#pragma once

#include <nanobind/nanobind.h>

namespace moe::python {

namespace nb = nanobind;

// Capsules by name, to register with jax.ffi; empty where this was built without jaxlib's headers.
nb::dict xla_handlers();

}  // namespace moe::python
