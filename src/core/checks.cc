#include "core/checks.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/text.h"

namespace moe {
namespace {

std::string list_text(std::span<const int64_t> values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) out += text(i ? ", " : "", values[i]);
  return out + "]";
}

bool multiply_overflows(int64_t a, int64_t b, int64_t* product) {
  return __builtin_mul_overflow(a, b, product);
}

// Byte offset behind the highest element, counted from the data pointer.
bool extent_overflows(const TensorDesc& desc, int64_t* bytes) {
  int64_t last = desc.offset;
  for (int dim = 0; dim < desc.num_dims; ++dim) {
    if (desc.shape[dim] <= 1) continue;
    int64_t step;
    if (multiply_overflows(desc.shape[dim] - 1, desc.strides[dim], &step) ||
        __builtin_add_overflow(last, step, &last)) {
      return true;
    }
  }
  return __builtin_add_overflow(last, 1, &last) ||
         multiply_overflows(last, dtype_bytes(desc.dtype), bytes);
}

// A tensor without elements has sizes in bytes, too: of a row, for instance.
bool size_overflows(const TensorDesc& desc) {
  int64_t bytes = dtype_bytes(desc.dtype);
  const auto shape = std::span(desc.shape).first(desc.num_dims);
  return std::any_of(shape.begin(), shape.end(), [&](int64_t size) {
    return multiply_overflows(bytes, std::max<int64_t>(1, size), &bytes);
  });
}

bool is_contiguous(const TensorDesc& desc) {
  if (num_elements(desc) == 0) return true;
  int64_t stride = 1;
  for (int dim = desc.num_dims - 1; dim >= 0; --dim) {
    if (desc.shape[dim] != 1 && desc.strides[dim] != stride) return false;
    stride *= desc.shape[dim];
  }
  return true;
}

void check_dtype(const char* name, const TensorDesc& desc, std::initializer_list<DType> allowed) {
  if (std::find(allowed.begin(), allowed.end(), desc.dtype) != allowed.end()) return;
  std::string list;
  for (DType dtype : allowed) list += text(list.empty() ? "" : ", ", dtype_name(dtype));
  throw InvalidArgument(name, text("dtype ", dtype_name(desc.dtype), ", but needs one of ", list));
}

struct ByteRange {
  uintptr_t begin, end;
};

ByteRange byte_range(const BoundTensor& tensor) {
  if (!tensor.desc || num_elements(*tensor.desc) == 0) return {0, 0};
  int64_t extent = 0;
  extent_overflows(*tensor.desc, &extent);  // does not: check_layout has seen it
  const auto base = reinterpret_cast<uintptr_t>(tensor.data);
  const uintptr_t end = base + static_cast<uintptr_t>(extent);
  return {reinterpret_cast<uintptr_t>(first_element(tensor)), end < base ? UINTPTR_MAX : end};
}

void check_apart(const BoundTensor& output, const BoundTensor& other) {
  const ByteRange a = byte_range(output), b = byte_range(other);
  if (a.begin == a.end || b.begin == b.end || a.end <= b.begin || b.end <= a.begin) return;
  throw InvalidArgument(
      output.name,
      text("overlaps ", other.name, " by ", std::min(a.end, b.end) - std::max(a.begin, b.begin),
           " bytes, but an output must not share memory with any other tensor"));
}

}  // namespace

std::string shape_text(const TensorDesc& desc) {
  const int kept = std::min(desc.num_dims, TensorDesc::kMaxDims);
  return list_text(std::span(desc.shape).first(static_cast<size_t>(std::max(kept, 0))));
}

void check_float_dtype(const char* name, const TensorDesc& desc) {
  check_dtype(name, desc, {DType::kF32, DType::kF16, DType::kBF16, DType::kF64});
}

void check_index_dtype(const char* name, const TensorDesc& desc) {
  check_dtype(name, desc, {DType::kI32, DType::kI64});
}

void check_layout(const char* name, const TensorDesc& desc, int num_dims, const char* dims) {
  if (desc.num_dims != num_dims) {
    throw InvalidArgument(name,
                          text(desc.num_dims, " dimensions, but needs ", num_dims, ": ", dims));
  }
  const auto shape = std::span(desc.shape).first(static_cast<size_t>(num_dims));
  const auto strides = std::span(desc.strides).first(static_cast<size_t>(num_dims));
  for (int dim = 0; dim < num_dims; ++dim) {
    if (shape[dim] < 0) {
      throw InvalidArgument(name, text("shape ", list_text(shape), ", but sizes must be >= 0"));
    }
    if (strides[dim] < 0 && shape[dim] != 1) {
      throw InvalidArgument(name, text("strides ", list_text(strides), ", but must be >= 0"));
    }
  }
  if (desc.offset < 0) {
    throw InvalidArgument(name, text("offset ", desc.offset, ", but must be >= 0"));
  }
  int64_t extent;
  if (size_overflows(desc) || extent_overflows(desc, &extent)) {
    throw InvalidArgument(
        name, text("shape ", list_text(shape), " with strides ", list_text(strides), " and offset ",
                   desc.offset, ", but sizes and offsets in bytes must stay below 2^63"));
  }
}

void check_output_layout(const char* name, const TensorDesc& desc,
                         std::initializer_list<int64_t> shape, const char* dims) {
  check_layout(name, desc, static_cast<int>(shape.size()), dims);
  if (!std::equal(shape.begin(), shape.end(), desc.shape.begin())) {
    throw InvalidArgument(name,
                          text("shape ", shape_text(desc), ", but needs ",
                               list_text(std::span(shape.begin(), shape.size())), ": ", dims));
  }
  if (!is_contiguous(desc)) {
    throw InvalidArgument(
        name, text("strides ",
                   list_text(std::span(desc.strides).first(static_cast<size_t>(desc.num_dims))),
                   " for shape ", shape_text(desc), ", but an output must be contiguous"));
  }
}

void check_output(const char* name, const TensorDesc& desc, std::initializer_list<int64_t> shape,
                  const char* dims, const char* input_name, const TensorDesc& input) {
  if (desc.dtype != input.dtype) {
    throw InvalidArgument(name, text("dtype ", dtype_name(desc.dtype), ", but needs ",
                                     dtype_name(input.dtype), ", the dtype of ", input_name));
  }
  check_output_layout(name, desc, shape, dims);
}

int64_t num_elements(const TensorDesc& desc) {
  // Zero first: the product of the other sizes may be too large for 64 bits.
  const auto shape = std::span(desc.shape).first(static_cast<size_t>(desc.num_dims));
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

void check_addresses(std::initializer_list<BoundTensor> tensors) {
  for (const BoundTensor& tensor : tensors) {
    if (tensor.desc && !tensor.data && num_elements(*tensor.desc) > 0) {
      throw NullArgument(tensor.name, text("null, but needs the address of a tensor of shape ",
                                           shape_text(*tensor.desc)));
    }
  }
}

void check_overlap(std::initializer_list<BoundTensor> outputs,
                   std::initializer_list<BoundTensor> inputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    for (const BoundTensor& input : inputs) check_apart(*output, input);
    for (auto other = outputs.begin(); other != output; ++other) check_apart(*output, *other);
  }
}

void* first_element(const BoundTensor& tensor) {
  if (!tensor.desc || !tensor.data) return nullptr;
  const char* data = static_cast<const char*>(tensor.data);
  return const_cast<char*>(data) + tensor.desc->offset * dtype_bytes(tensor.desc->dtype);
}

}  // namespace moe
