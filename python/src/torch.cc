#include "torch.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>

#include "dlpack_types.h"
#include "errors.h"

namespace moe::python {
namespace {

// Found with the first tensor, and never lost again: torch cannot be unloaded.
std::atomic<PyTypeObject*> tensor_type{nullptr};
std::atomic<const DLPackExchangeAPI*> exchange_api{nullptr};
std::atomic<PyObject*> increment_version{nullptr};
std::atomic<PyObject*> forward_ad{nullptr};

const DLPackExchangeAPI* api_of(nb::handle type) {
  const nb::object capsule = nb::getattr(type, "__dlpack_c_exchange_api__", nb::none());
  if (!PyCapsule_IsValid(capsule.ptr(), kExchangeCapsule)) return nullptr;
  const auto* api =
      static_cast<const DLPackExchangeAPI*>(PyCapsule_GetPointer(capsule.ptr(), kExchangeCapsule));
  while (api && api->version.major != kDLPackMajor) api = api->prev_api;
  return api && api->dltensor_from_py_object_no_sync ? api : nullptr;
}

bool find_torch() {
  const nb::object modules = nb::module_::import_("sys").attr("modules");
  const nb::object torch = modules.attr("get")("torch");
  const nb::object type = nb::getattr(torch, "Tensor", nb::none());
  if (!PyType_Check(type.ptr())) return false;
  const DLPackExchangeAPI* api = api_of(type);
  const nb::object autograd = nb::getattr(torch, "autograd", nb::none());
  const nb::object graph = nb::getattr(autograd, "graph", nb::none());
  nb::object increment = nb::getattr(graph, "increment_version", nb::none());
  nb::object forward = nb::getattr(autograd, "forward_ad", nb::none());
  // Absent while another thread is still importing torch.
  if (!api || increment.is_none() || forward.is_none()) return false;
  exchange_api.store(api, std::memory_order_relaxed);
  // Kept for good, like torch itself.
  increment_version.store(increment.release().ptr(), std::memory_order_relaxed);
  forward_ad.store(forward.release().ptr(), std::memory_order_relaxed);
  tensor_type.store(reinterpret_cast<PyTypeObject*>(type.inc_ref().ptr()),
                    std::memory_order_release);
  return true;
}

PyObject* interned(const char* name) { return PyUnicode_InternFromString(name); }

bool is_true(PyObject* value) {
  const nb::object owned = nb::steal(value);
  if (!value) nb::raise_python_error();
  const int truth = PyObject_IsTrue(value);
  if (truth < 0) nb::raise_python_error();
  return truth;
}

// The lazy minus sign of a view into a conjugated tensor: memory holds the opposite.
bool is_negated(nb::handle object) {
  static PyObject* const kIsNeg = interned("is_neg");
  return is_true(PyObject_CallMethodNoArgs(object.ptr(), kIsNeg));
}

// What a tensor is lent as, in front of its memory, in one block. Asking PyTorch for memory by way
// of DLPack makes two tensors of it, one in the other, and takes twice as long.
struct Fresh {
  DLManagedTensorVersioned lent;  // first: its deleter gets no more than its address
  std::array<int64_t, TensorDesc::kMaxDims> shape;
  void* block;
};

void free_fresh(DLManagedTensorVersioned* lent) {
  std::free(reinterpret_cast<Fresh*>(lent)->block);
}

Fresh* make_fresh(DType dtype, std::span<const int64_t> shape) {
  constexpr uintptr_t kAlignment = 64;  // as PyTorch's own
  // Not std::aligned_alloc, which does not take from the small blocks that wait for reuse.
  void* block = std::malloc(sizeof(Fresh) + kAlignment + bytes_of(dtype, shape));
  if (!block) throw std::bad_alloc();
  const uintptr_t front = reinterpret_cast<uintptr_t>(block) + sizeof(Fresh) + kAlignment - 1;
  char* data = reinterpret_cast<char*>(front / kAlignment * kAlignment);
  auto* fresh = new (data - sizeof(Fresh)) Fresh{};
  fresh->block = block;
  std::copy(shape.begin(), shape.end(), fresh->shape.begin());
  fresh->lent = {{kDLPackMajor, 0}, nullptr, &free_fresh, 0, {}};
  fresh->lent.dl_tensor = {data,
                           {kDLCPU, 0},
                           static_cast<int32_t>(shape.size()),
                           to_dlpack(dtype),
                           fresh->shape.data(),
                           nullptr,
                           0};
  return fresh;
}

}  // namespace

bool is_torch(nb::handle object) {
  PyTypeObject* type = tensor_type.load(std::memory_order_acquire);
  if (!type) {
    if (!find_torch()) return false;
    type = tensor_type.load(std::memory_order_acquire);
  }
  return PyObject_TypeCheck(object.ptr(), type);
}

DLTensor view_torch(nb::handle object, const char* name) {
  DLTensor tensor{};
  const DLPackExchangeAPI* api = exchange_api.load(std::memory_order_relaxed);
  if (api->dltensor_from_py_object_no_sync(object.ptr(), &tensor) != 0) {
    const std::string problem = take_python_error();
    throw_value_error(name, "a tensor on ", str_text(object.attr("device")), " of layout ",
                      str_text(object.attr("layout")), ", but needs a strided CPU tensor (",
                      problem, ")");
  }
  if (tensor.dtype.code != kDLInt && is_negated(object)) {
    throw_value_error(name,
                      "a tensor with a pending negation, but needs one without: see resolve_neg()");
  }
  return tensor;
}

bool torch_cpu_dtype(nb::handle object, DType& dtype) {
  DLTensor tensor{};
  const DLPackExchangeAPI* api = exchange_api.load(std::memory_order_relaxed);
  if (api->dltensor_from_py_object_no_sync(object.ptr(), &tensor) != 0) {
    PyErr_Clear();
    return false;
  }
  return tensor.device.device_type == kDLCPU && from_dlpack(tensor.dtype, dtype);
}

bool requires_grad(nb::handle object) {
  static PyObject* const kRequiresGrad = interned("requires_grad");
  return is_true(PyObject_GetAttr(object.ptr(), kRequiresGrad));
}

bool has_tangent(nb::handle object) {
  static PyObject* const kLevel = interned("_current_level");
  const nb::handle module = forward_ad.load(std::memory_order_relaxed);
  // Below 0 no tensor has one. Where PyTorch has this name no more: the slow question, always
  // right.
  const nb::object level = nb::getattr(module, nb::handle(kLevel), nb::int_(0));
  if (nb::cast<int>(level) < 0) return false;
  return !module.attr("unpack_dual")(object).attr("tangent").is_none();
}

void mark_written(nb::handle tensor) {
  nb::handle(increment_version.load(std::memory_order_relaxed))(tensor);
}

nb::object new_torch(DType dtype, std::span<const int64_t> shape, void*& data) {
  Fresh* fresh = make_fresh(dtype, shape);
  data = fresh->lent.dl_tensor.data;
  void* object = nullptr;
  const DLPackExchangeAPI* api = exchange_api.load(std::memory_order_relaxed);
  if (api->managed_tensor_to_py_object_no_sync(&fresh->lent, &object) != 0) {
    free_fresh(&fresh->lent);
    nb::raise_python_error();
  }
  return nb::steal(static_cast<PyObject*>(object));
}

}  // namespace moe::python
