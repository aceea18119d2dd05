#include "arguments.h"

#include "errors.h"

namespace moe::python {
namespace {

// Ctrl-C and its like are no exceptions of the argument's: they come through.
void clear_exception() {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) nb::raise_python_error();
  PyErr_Clear();
}

std::string repr_text(nb::handle object) {
  const nb::object repr = nb::steal(PyObject_Repr(object.ptr()));
  if (repr.is_valid()) return str_text(repr);
  PyErr_Clear();  // for instance of an int with too many digits to print
  return "a number";
}

int64_t to_int64(nb::handle number, const char* name) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0) throw_value_error(name, repr_text(number), ", but needs an int of 64 bits");
  if (value == -1 && PyErr_Occurred()) nb::raise_python_error();
  return value;
}

[[noreturn]] void throw_no_range(nb::handle object) {
  throw_type_error("ep_range", "a ", type_text(object), ", but needs two ints: (begin, end)");
}

// Tensors have items, but are no sequences in the sense of PySequence_Check.
EpRange range_of_items(nb::handle object) {
  const Py_ssize_t size = PyObject_Size(object.ptr());
  if (size < 0) {
    clear_exception();
    throw_no_range(object);
  }
  if (size != 2) throw_value_error("ep_range", size, " values, but needs two: (begin, end)");
  const auto item = [&](int i) {
    PyObject* value = PyObject_GetItem(object.ptr(), nb::int_(i).ptr());
    if (!value) {
      clear_exception();
      throw_no_range(object);
    }
    return to_int(nb::steal(value), "ep_range");
  };
  const int64_t begin = item(0);
  return {begin, item(1)};
}

}  // namespace

int64_t to_int(nb::handle object, const char* name) {
  if (PyLong_CheckExact(object.ptr())) return to_int64(object, name);
  if (PyBool_Check(object.ptr())) throw_type_error(name, repr_text(object), ", but needs an int");
  PyObject* number = PyNumber_Index(object.ptr());
  if (!number) {
    clear_exception();
    throw_type_error(name, "a ", type_text(object), ", but needs an int");
  }
  return to_int64(nb::steal(number), name);
}

std::optional<int64_t> to_optional_int(nb::handle object, const char* name) {
  return object.is_none() ? std::nullopt : std::optional(to_int(object, name));
}

std::optional<EpRange> to_ep_range(nb::handle object) {
  if (object.is_none()) return std::nullopt;
  if (PyTuple_CheckExact(object.ptr()) && PyTuple_GET_SIZE(object.ptr()) == 2) {
    return EpRange{to_int(PyTuple_GET_ITEM(object.ptr(), 0), "ep_range"),
                   to_int(PyTuple_GET_ITEM(object.ptr(), 1), "ep_range")};
  }
  return range_of_items(object);
}

int64_t window_rows(const std::optional<EpRange>& range, int64_t otherwise) {
  if (!range) return otherwise;
  return range->begin < 0 || range->end < range->begin ? 0 : range->end - range->begin;
}

int64_t slots_of(const Array& indices) {
  const int64_t num_tokens = indices.size(0);
  const int64_t top_k = indices.desc().num_dims == 1 ? 1 : indices.size(1);
  int64_t num_slots = 0;
  if (__builtin_mul_overflow(num_tokens, top_k, &num_slots)) {
    throw_value_error("indices", num_tokens, " times ", top_k,
                      " elements, but needs fewer than 2^63");
  }
  return num_slots;
}

int64_t top_k_of(nb::handle top_k, const Array& probs) {
  if (!top_k.is_none()) return to_int(top_k, "top_k");
  return probs && probs.desc().num_dims == 2 ? probs.size(1) : 1;
}

}  // namespace moe::python
