#include "torch_road.h"

#include <atomic>

#include "dlpack_types.h"
#include "torch.h"

namespace moe::python {
namespace {

// What PyTorch is asked for each call. None of these is owned: torch cannot be unloaded.
struct Questions {
  PyObject* in_transform;
  PyObject* num_modes;
  PyObject* is_profiled;
  PyObject* tracing_state;
  PyObject* is_grad_enabled;
  PyTypeObject* tensor;
  PyTypeObject* parameter;
};

std::atomic<const Questions*> questions{nullptr};

PyObject* found(nb::handle module, const char* name) {
  return nb::getattr(module, name, nb::none()).release().ptr();
}

const Questions* find_questions() {
  const nb::object torch = nb::module_::import_("torch");
  const nb::object own = torch.attr("_C");
  // Called for the first time by two threads, it leaves one of these behind.
  const auto* all =
      new Questions{found(own, "_are_functorch_transforms_active"),
                    found(own, "_len_torch_dispatch_stack"),
                    found(torch.attr("autograd"), "_profiler_enabled"),
                    found(own, "_get_tracing_state"),
                    found(torch, "is_grad_enabled"),
                    reinterpret_cast<PyTypeObject*>(found(torch, "Tensor")),
                    reinterpret_cast<PyTypeObject*>(found(torch.attr("nn"), "Parameter"))};
  questions.store(all, std::memory_order_release);
  return all;
}

// Where PyTorch has the question no more: the answer that leads to the road that is always right.
bool says_yes(PyObject* question) {
  if (question == Py_None) return true;
  const nb::object answer = nb::steal(PyObject_CallNoArgs(question));
  if (!answer.is_valid()) nb::raise_python_error();
  return PyObject_IsTrue(answer.ptr()) != 0;
}

bool is_watched(const Questions& ask) {
  return says_yes(ask.num_modes) || says_yes(ask.is_profiled) || says_yes(ask.tracing_state);
}

// A window counts as one.
bool is_number(nb::handle arg) {
  return PyLong_CheckExact(arg.ptr()) || PyTuple_CheckExact(arg.ptr());
}

// Other types may have ideas of their own about what a call does.
bool is_ordinary(nb::handle arg, bool is_index, const Questions& ask) {
  const PyTypeObject* type = Py_TYPE(arg.ptr());
  if (type != ask.tensor && type != ask.parameter) return false;
  DType dtype{};
  return is_torch(arg) && torch_cpu_dtype(arg, dtype) &&
         is_index == (dtype == DType::kI32 || dtype == DType::kI64);
}

TorchRoad road_of(nb::args args, const Questions& ask) {
  constexpr size_t kIndices = 1, kFirstOptional = 2, kFirstNumber = 3;
  bool needs_grad = false;
  for (size_t i = 0; i < args.size(); ++i) {
    const nb::handle arg = args[i];
    if (i >= kFirstOptional && arg.is_none()) continue;
    if (i >= kFirstNumber && is_number(arg)) continue;
    if (!is_ordinary(arg, i == kIndices, ask)) return TorchRoad::kDispatcher;
    needs_grad = needs_grad || (i != kIndices && requires_grad(arg));
  }
  return needs_grad && says_yes(ask.is_grad_enabled) ? TorchRoad::kAutograd : TorchRoad::kDirect;
}

}  // namespace

int torch_road(nb::args args) {
  const Questions* ask = questions.load(std::memory_order_acquire);
  if (!ask) ask = find_questions();
  if (ask->in_transform != Py_None && says_yes(ask->in_transform)) {
    return static_cast<int>(TorchRoad::kTransform);
  }
  return static_cast<int>(is_watched(*ask) ? TorchRoad::kDispatcher : road_of(args, *ask));
}

}  // namespace moe::python
