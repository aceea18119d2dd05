// Stands in for xla.cc where jaxlib's headers are missing.
#include "xla.h"

namespace moe::python {

nb::dict xla_handlers() { return {}; }

}  // namespace moe::python
