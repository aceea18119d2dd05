// What the process can set and what the build can tell.
#pragma once

#include <nanobind/nanobind.h>

namespace moe::python {

namespace nb = nanobind;

nb::object set_num_threads(nb::handle num_threads);
int num_threads();
nb::dict config();

}  // namespace moe::python
