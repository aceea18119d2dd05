#include "outputs.h"

#include <nanobind/ndarray.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <span>

#include "dlpack_types.h"
#include "errors.h"
#include "numpy.h"
#include "torch.h"

namespace moe::python {
namespace {

// What JAX takes over without a copy.
constexpr size_t kAlignment = 64;

std::span<const int64_t> shape_of(const TensorDesc& desc) {
  return {desc.shape.data(), static_cast<size_t>(desc.num_dims)};
}

// Fresh memory is cheaper to touch for the first time in pages of 2 MiB than in those of 4 KiB, by
// far: the call that writes an output pays for it. NumPy asks for them by itself, and
// torch/ep/_memory.py from the same size on.
void ask_for_huge_pages(void* data, const TensorDesc& desc) {
  constexpr uintptr_t kPageBytes = 4096, kWorthIt = uintptr_t{4} << 20;
  const auto address = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first_page = (address + kPageBytes - 1) / kPageBytes * kPageBytes;
  const uintptr_t end = address + bytes_of(desc.dtype, shape_of(desc));
  if (end - address < kWorthIt) return;
  madvise(reinterpret_cast<void*>(first_page), end - first_page, MADV_HUGEPAGE);
}

// Fresh memory that lends itself by __dlpack__.
nb::object new_lender(const TensorDesc& desc, void*& data) {
  const size_t num_bytes =
      (bytes_of(desc.dtype, shape_of(desc)) + kAlignment) / kAlignment * kAlignment;
  data = std::aligned_alloc(kAlignment, num_bytes);
  if (!data) throw std::bad_alloc();
  const nb::capsule owner(data, [](void* memory) noexcept { std::free(memory); });
  size_t shape[TensorDesc::kMaxDims];
  for (int dim = 0; dim < desc.num_dims; ++dim) shape[dim] = static_cast<size_t>(desc.shape[dim]);
  const DLDataType dtype = to_dlpack(desc.dtype);
  return nb::cast(
      nb::ndarray<nb::array_api>(data, static_cast<size_t>(desc.num_dims), shape, owner, nullptr,
                                 nb::dlpack::dtype{dtype.code, dtype.bits, dtype.lanes}));
}

}  // namespace

Output::Output(nb::handle given, const char* name)
    : object_(nb::borrow(given)),
      array_(given, {.name = name, .elements = Elements::kAny, .is_written = true}),
      desc_(array_.given()),
      data_(array_.data()) {}

void Output::expect(DType dtype, std::initializer_list<int64_t> shape) {
  if (!is_given()) desc_ = TensorDesc::contiguous(dtype, shape);
}

void Output::allocate(const Family& family) {
  if (is_given() || !desc_) return;
  switch (family.kind) {
    case Family::Kind::kNumpy:
      object_ = new_numpy(desc_->dtype, shape_of(*desc_), data_);
      break;
    case Family::Kind::kTorch:
      object_ = new_torch(desc_->dtype, shape_of(*desc_), data_);
      ask_for_huge_pages(data_, *desc_);
      break;
    case Family::Kind::kNamespace:
      object_ = new_lender(*desc_, data_);
      ask_for_huge_pages(data_, *desc_);
      from_dlpack_ = family.from_dlpack;
      break;
  }
}

nb::object Output::take() {
  if (array_.family().kind == Family::Kind::kTorch) mark_written(object_);
  // Only now: the other side may copy.
  return from_dlpack_.is_valid() ? from_dlpack_(object_) : object_;
}

std::array<nb::handle, kMaxOutputs> split_outputs(nb::handle out, size_t num) {
  std::array<nb::handle, kMaxOutputs> items;
  items.fill(nb::none());
  if (out.is_none()) return items;
  if (!PyTuple_Check(out.ptr())) {
    throw_type_error("out", "a ", type_text(out), ", but needs a tuple of ", num,
                     ", with None where a fresh array is wanted");
  }
  const auto size = static_cast<size_t>(PyTuple_GET_SIZE(out.ptr()));
  if (size != num) {
    throw_value_error("out", size, " values, but needs ", num,
                      ", with None where a fresh array is wanted");
  }
  for (size_t i = 0; i < num; ++i) items[i] = PyTuple_GET_ITEM(out.ptr(), i);
  return items;
}

}  // namespace moe::python
