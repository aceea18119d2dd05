// Errors as Python knows them. Texts have the library's form: "argument: what it got, what it
// needs".
#pragma once

#include <nanobind/nanobind.h>

#include <sstream>
#include <string>

namespace moe::python {

namespace nb = nanobind;

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

// What is no array, no int, or has an unsupported dtype.
template <class... Parts>
[[noreturn]] void throw_type_error(const std::string& argument, const Parts&... parts) {
  throw nb::type_error(text(argument, ": ", parts...).c_str());
}

// Everything else that an argument can have wrong.
template <class... Parts>
[[noreturn]] void throw_value_error(const std::string& argument, const Parts&... parts) {
  throw nb::value_error(text(argument, ": ", parts...).c_str());
}

// "numpy.ndarray": how messages name the type of an object.
std::string type_text(nb::handle object);

// str(object), whatever that raises.
std::string str_text(nb::handle object);

// The text of the Python error that is set, which is cleared. Its first line:
// some producers append the stack of their own.
std::string take_python_error();

}  // namespace moe::python
