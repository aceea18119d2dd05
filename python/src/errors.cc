#include "errors.h"

namespace moe::python {

std::string str_text(nb::handle object) {
  const nb::object string = nb::steal(PyObject_Str(object.ptr()));
  const char* characters = string.is_valid() ? PyUnicode_AsUTF8(string.ptr()) : nullptr;
  if (characters) return characters;
  PyErr_Clear();
  return "(no text)";
}

std::string type_text(nb::handle object) {
  const nb::handle type = object.type();
  const std::string module = str_text(nb::getattr(type, "__module__", nb::none()));
  const std::string name = str_text(nb::getattr(type, "__qualname__", nb::none()));
  return module == "builtins" ? name : module + "." + name;
}

std::string take_python_error() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const nb::object owned_type = nb::steal(type), owned_value = nb::steal(value),
                   owned_trace = nb::steal(trace);
  if (!value) return "no reason given";
  const std::string all = str_text(owned_value);
  return all.substr(0, all.find('\n'));
}

}  // namespace moe::python
