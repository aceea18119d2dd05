#include "errors.h"

namespace moe::python {

std::string type_text(nb::handle object) {
  nb::handle type = object.type();
  const auto attribute = [&](const char* name) {
    return std::string(nb::str(nb::getattr(type, name, nb::str("?"))).c_str());
  };
  const std::string module = attribute("__module__");
  return module == "builtins" ? attribute("__qualname__")
                              : module + "." + attribute("__qualname__");
}

std::string take_python_error() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const nb::object owned_type = nb::steal(type), owned_value = nb::steal(value),
                   owned_trace = nb::steal(trace);
  PyObject* message = value ? PyObject_Str(value) : nullptr;
  if (!message) {
    PyErr_Clear();
    return "an error without a text";
  }
  const std::string all = nb::steal<nb::str>(message).c_str();
  return all.substr(0, all.find('\n'));
}

}  // namespace moe::python
