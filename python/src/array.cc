#include "array.h"

#include <algorithm>
#include <string_view>

#include "arguments.h"
#include "dlpack_types.h"
#include "errors.h"
#include "numpy.h"
#include "torch.h"

namespace moe::python {
namespace {

// Absent attributes and objects without attributes give none.
nb::object attribute_or_none(nb::handle object, const char* name) {
  return nb::getattr(object, name, nb::none());
}

const char* needed_dtypes(Elements elements) {
  switch (elements) {
    case Elements::kFloats:
      return "float32, float16, bfloat16 or float64";
    case Elements::kIndices:
      return "int32 or int64";
    default:
      return "one that this package knows";
  }
}

[[noreturn]] void throw_dtype(const Reading& reading, const std::string& got) {
  throw_type_error(reading.name, "dtype ", got, ", but needs ", needed_dtypes(reading.elements));
}

[[noreturn]] void throw_no_array(nb::handle object, const Reading& reading) {
  throw_type_error(reading.name, "a ", type_text(object),
                   ", but needs an array: of NumPy, PyTorch or JAX, or another with __dlpack__ or "
                   "the buffer protocol");
}

[[noreturn]] void throw_read_only(const Reading& reading) {
  throw_value_error(reading.name, "read-only, but needs an array that can be written");
}

void refuse_grad(bool requires_grad, const Reading& reading) {
  if (!requires_grad) return;
  throw_value_error(reading.name,
                    "requires a gradient, but these functions do not record any: use "
                    "moe_permute.torch, or pass it detached");
}

void refuse_tangent(nb::handle object, const Reading& reading) {
  if (!has_tangent(object)) return;
  throw_value_error(
      reading.name,
      "carries a tangent, but there is no forward-mode differentiation here: pass its "
      "primal (torch.autograd.forward_ad.unpack_dual)");
}

std::string dtype_text(const DLDataType& type) {
  constexpr const char* kCodes[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  const std::string code = type.code < std::size(kCodes) ? kCodes[type.code] : "unknown";
  const std::string lanes = type.lanes == 1 ? "" : text("x", type.lanes);
  return code == "bool" ? code : text(code, int{type.bits}, lanes);
}

// Native formats of the struct module.
bool from_format(std::string_view format, int64_t item_bytes, DType& dtype) {
  if (!format.empty() && std::string_view("@=<").find(format[0]) != std::string_view::npos) {
    format.remove_prefix(1);
  }
  if (format.size() != 1) return false;
  const bool is_int = std::string_view("ilqn").find(format[0]) != std::string_view::npos;
  const bool is_float = std::string_view("efd").find(format[0]) != std::string_view::npos;
  if (!is_int && !is_float) return false;
  for (const DType candidate : {DType::kF32, DType::kF16, DType::kF64, DType::kI32, DType::kI64}) {
    const bool candidate_is_int = candidate == DType::kI32 || candidate == DType::kI64;
    if (candidate_is_int == is_int && dtype_bytes(candidate) == item_bytes) {
      dtype = candidate;
      return true;
    }
  }
  return false;
}

// What calls itself like the module that an array's type comes from, for arrays without
// __array_namespace__.
nb::object module_of(nb::handle object) {
  const nb::object name = attribute_or_none(object.type(), "__module__");
  if (!nb::isinstance<nb::str>(name)) return nb::none();
  const std::string module = str_text(name);
  return nb::module_::import_("sys").attr("modules").attr("get")(
      nb::str(module.substr(0, module.find('.')).c_str()));
}

Family family_of(nb::handle object) {
  const nb::object own = attribute_or_none(object, "__array_namespace__");
  const nb::object from_dlpack =
      attribute_or_none(own.is_none() ? module_of(object) : own(), "from_dlpack");
  if (from_dlpack.is_none()) return {};
  return {Family::Kind::kNamespace, from_dlpack};
}

bool is_cpu(int64_t device_type) {
  return device_type == kDLCPU || device_type == kDLCUDAHost || device_type == kDLROCMHost;
}

void check_device(int64_t device_type, const Reading& reading) {
  if (is_cpu(device_type)) return;
  throw_value_error(reading.name, "memory of another device (DLPack device type ", device_type,
                    "), but needs the CPU's");
}

nb::object call_dlpack(nb::handle object) {
  const nb::object method = object.attr("__dlpack__");
  try {
    return method(nb::arg("max_version") = nb::make_tuple(kDLPackMajor, 0));
  } catch (nb::python_error& error) {
    // Producers from before versions were, which know no such argument.
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return method();
}

}  // namespace

Array::Array(nb::handle object, const Reading& reading) {
  if (object.is_none()) return;
  try {
    read(object, reading);
  } catch (...) {
    // No destructor runs for what was not constructed.
    release();
    throw;
  }
  is_present_ = true;
}

Array::~Array() { release(); }

void Array::release() noexcept {
  if (managed_ && managed_->deleter) managed_->deleter(managed_);
  if (versioned_ && versioned_->deleter) versioned_->deleter(versioned_);
  if (buffer_) PyBuffer_Release(&*buffer_);
}

void Array::read(nb::handle object, const Reading& reading) {
  if (is_numpy(object)) return read_numpy(object, reading);
  if (is_torch(object)) return read_torch(object, reading);
  if (nb::hasattr(object.type(), "__dlpack__")) return read_dlpack(object, reading);
  if (PyObject_CheckBuffer(object.ptr())) return read_buffer(object, reading);
  throw_no_array(object, reading);
}

void Array::check_elements(const Reading& reading) const {
  const bool is_index = desc_.dtype == DType::kI32 || desc_.dtype == DType::kI64;
  if (reading.elements == Elements::kAny) return;
  if (is_index != (reading.elements == Elements::kIndices)) {
    throw_dtype(reading, dtype_name(desc_.dtype));
  }
}

void Array::read_numpy(nb::handle object, const Reading& reading) {
  if (is_masked(object)) {
    throw_type_error(reading.name,
                     "a numpy.ma.MaskedArray, whose mask would be lost, but needs an array without "
                     "one: give filled(value), or its data");
  }
  if (!numpy_dtype(object, desc_.dtype)) throw_dtype(reading, numpy_dtype_text(object));
  check_elements(reading);
  const NumpyView view = view_numpy(object);
  if (reading.is_written && !view.writeable) throw_read_only(reading);
  data_ = view.data;
  set_byte_layout(reading, view.num_dims, view.shape, view.byte_strides);
}

void Array::read_torch(nb::handle object, const Reading& reading) {
  if (!reading.allow_grad) refuse_grad(requires_grad(object), reading);
  refuse_tangent(object, reading);
  family_.kind = Family::Kind::kTorch;
  read_tensor(view_torch(object, reading.name), reading);
}

void Array::read_dlpack(nb::handle object, const Reading& reading) {
  if (!reading.allow_grad) {
    refuse_grad(attribute_or_none(object, "requires_grad").is(nb::handle(Py_True)), reading);
  }
  if (nb::hasattr(object, "__dlpack_device__")) {
    const nb::object device = object.attr("__dlpack_device__")();
    if (nb::isinstance<nb::tuple>(device) && nb::len(device) == 2) {
      check_device(to_int(PyTuple_GET_ITEM(device.ptr(), 0), "__dlpack_device__"), reading);
    }
  }
  const nb::object capsule = call_dlpack(object);
  family_ = family_of(object);
  read_capsule(capsule, reading);
}

void Array::read_capsule(nb::handle capsule, const Reading& reading) {
  if (PyCapsule_IsValid(capsule.ptr(), kVersionedCapsule)) {
    versioned_ = static_cast<DLManagedTensorVersioned*>(
        PyCapsule_GetPointer(capsule.ptr(), kVersionedCapsule));
    if (PyCapsule_SetName(capsule.ptr(), kUsedVersionedCapsule) != 0) nb::raise_python_error();
    if (versioned_->version.major != kDLPackMajor) {
      throw_value_error(reading.name, "DLPack ", versioned_->version.major, ".",
                        versioned_->version.minor, ", but needs version ", kDLPackMajor);
    }
    if (reading.is_written && (versioned_->flags & kDLReadOnly)) throw_read_only(reading);
    if (reading.is_written && (versioned_->flags & kDLIsCopied)) {
      throw_value_error(reading.name, "lent as a copy, but needs the array's own memory");
    }
    return read_tensor(versioned_->dl_tensor, reading);
  }
  if (!PyCapsule_IsValid(capsule.ptr(), kCapsule)) {
    throw_type_error(reading.name, "__dlpack__ gave a ", type_text(capsule),
                     ", but needs a capsule \"dltensor\" or \"dltensor_versioned\"");
  }
  // Before versions, nobody could say whether the memory may be written.
  if (reading.is_written) throw_read_only(reading);
  managed_ = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kCapsule));
  if (PyCapsule_SetName(capsule.ptr(), kUsedCapsule) != 0) nb::raise_python_error();
  read_tensor(managed_->dl_tensor, reading);
}

void Array::read_tensor(const DLTensor& tensor, const Reading& reading) {
  check_device(tensor.device.device_type, reading);
  if (!from_dlpack(tensor.dtype, desc_.dtype)) throw_dtype(reading, dtype_text(tensor.dtype));
  check_elements(reading);
  data_ = tensor.data ? static_cast<char*>(tensor.data) + tensor.byte_offset : nullptr;
  const std::span shape(tensor.shape, static_cast<size_t>(std::max(tensor.ndim, 0)));
  desc_ = tensor.strides
              ? TensorDesc::strided(desc_.dtype, shape, std::span(tensor.strides, shape.size()))
              : TensorDesc::contiguous(desc_.dtype, shape);
}

void Array::read_buffer(nb::handle object, const Reading& reading) {
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    nb::raise_python_error();
  }
  buffer_ = view;
  if (reading.is_written && view.readonly) throw_read_only(reading);
  const char* format = view.format ? view.format : "B";
  if (!from_format(format, view.itemsize, desc_.dtype)) {
    throw_dtype(reading, text("of format \"", format, "\""));
  }
  check_elements(reading);
  data_ = view.buf;
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  set_byte_layout(reading, view.ndim, reinterpret_cast<const int64_t*>(view.shape),
                  reinterpret_cast<const int64_t*>(view.strides));
}

void Array::set_byte_layout(const Reading& reading, int num_dims, const int64_t* shape,
                            const int64_t* byte_strides) {
  const int64_t item_bytes = dtype_bytes(desc_.dtype);
  desc_.num_dims = num_dims;
  for (int dim = 0; dim < std::min(num_dims, TensorDesc::kMaxDims); ++dim) {
    desc_.shape[dim] = shape[dim];
    desc_.strides[dim] = byte_strides[dim] / item_bytes;
    if (byte_strides[dim] % item_bytes != 0 && shape[dim] > 1) {
      throw_value_error(reading.name, "a stride of ", byte_strides[dim], " bytes in dimension ",
                        dim, ", but needs a multiple of an element's ", item_bytes);
    }
  }
}

Array required(nb::handle object, const Reading& reading) {
  if (object.is_none()) throw_no_array(object, reading);
  return Array(object, reading);
}

}  // namespace moe::python
