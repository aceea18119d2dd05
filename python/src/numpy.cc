#include "numpy.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include <array>
#include <atomic>
#include <string>

#include "errors.h"

namespace moe::python {
namespace {

static_assert(sizeof(npy_intp) == sizeof(int64_t));

PyArrayObject* as_array(nb::handle object) {
  return reinterpret_cast<PyArrayObject*>(object.ptr());
}

// Of ml_dtypes. Found once, with the first array of it or for the first result, and kept for good.
std::atomic<PyArray_Descr*> bfloat16{nullptr};

PyArray_Descr* find_bfloat16(nb::handle ml_dtypes) {
  nb::object dtype = nb::module_::import_("numpy").attr("dtype")(ml_dtypes.attr("bfloat16"));
  auto* descr = reinterpret_cast<PyArray_Descr*>(dtype.release().ptr());
  bfloat16.store(descr, std::memory_order_release);
  return descr;
}

bool is_bfloat16(int number) {
  if (number < NPY_USERDEF) return false;
  PyArray_Descr* known = bfloat16.load(std::memory_order_acquire);
  if (!known) {
    // An array of it can only exist where ml_dtypes has been imported.
    const nb::dict modules = nb::module_::import_("sys").attr("modules");
    if (!modules.contains("ml_dtypes")) return false;
    known = find_bfloat16(modules["ml_dtypes"]);
  }
  return number == known->type_num;
}

nb::object descr_of(DType dtype) {
  constexpr std::array kNumbers = {NPY_FLOAT32, NPY_FLOAT16, NPY_NOTYPE,
                                   NPY_FLOAT64, NPY_INT32,   NPY_INT64};
  if (dtype == DType::kBF16) {
    PyArray_Descr* known = bfloat16.load(std::memory_order_acquire);
    if (!known) known = find_bfloat16(nb::module_::import_("ml_dtypes"));
    return nb::borrow(reinterpret_cast<PyObject*>(known));
  }
  return nb::steal(
      reinterpret_cast<PyObject*>(PyArray_DescrFromType(kNumbers[static_cast<size_t>(dtype)])));
}

bool standard_dtype(const PyArray_Descr* descr, DType& dtype) {
  switch (descr->type_num) {
    case NPY_FLOAT:
      dtype = DType::kF32;
      return true;
    case NPY_HALF:
      dtype = DType::kF16;
      return true;
    case NPY_DOUBLE:
      dtype = DType::kF64;
      return true;
    case NPY_INT:
      dtype = DType::kI32;
      return true;
    case NPY_LONG:  // 8 bytes on every system that this is built for
    case NPY_LONGLONG:
      dtype = DType::kI64;
      return true;
    default:
      return false;
  }
}

}  // namespace

void import_numpy() {
  if (PyArray_ImportNumPyAPI() < 0) nb::raise_python_error();
}

bool is_numpy(nb::handle object) { return PyArray_Check(object.ptr()); }

bool is_masked(nb::handle object) {
  if (PyArray_CheckExact(object.ptr())) return false;
  const nb::object masked = nb::module_::import_("numpy").attr("ma").attr("MaskedArray");
  const int is_instance = PyObject_IsInstance(object.ptr(), masked.ptr());
  if (is_instance < 0) nb::raise_python_error();
  return is_instance != 0;
}

NumpyView view_numpy(nb::handle object) {
  PyArrayObject* array = as_array(object);
  return {PyArray_DATA(array), PyArray_NDIM(array),
          reinterpret_cast<const int64_t*>(PyArray_DIMS(array)),
          reinterpret_cast<const int64_t*>(PyArray_STRIDES(array)),
          static_cast<bool>(PyArray_ISWRITEABLE(array))};
}

bool numpy_dtype(nb::handle object, DType& dtype) {
  const PyArray_Descr* descr = PyArray_DESCR(as_array(object));
  if (!PyArray_ISNOTSWAPPED(as_array(object))) return false;
  if (standard_dtype(descr, dtype)) return true;
  dtype = DType::kBF16;
  return is_bfloat16(descr->type_num);
}

std::string numpy_dtype_text(nb::handle object) { return str_text(object.attr("dtype")); }

nb::object new_numpy(DType dtype, std::span<const int64_t> shape, void*& data) {
  nb::object descr = descr_of(dtype);
  PyObject* array = PyArray_NewFromDescr(
      &PyArray_Type, reinterpret_cast<PyArray_Descr*>(descr.release().ptr()),
      static_cast<int>(shape.size()), reinterpret_cast<const npy_intp*>(shape.data()), nullptr,
      nullptr, 0, nullptr);
  if (!array) nb::raise_python_error();
  data = PyArray_DATA(as_array(array));
  return nb::steal(array);
}

}  // namespace moe::python
