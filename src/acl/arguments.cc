#include "acl/arguments.h"

#include <algorithm>

#include "acl/arrays.h"
#include "acl/dtypes.h"
#include "acl/runtime/env.h"
#include "acl/runtime/error.h"
#include "acl/tensor.h"
#include "moe/error.h"

namespace moe::acl {
namespace {

constexpr int64_t kMaxTopK = 512;

bool has_no_elements(const TensorInfo& tensor) {
  return std::ranges::find(tensor.view_shape, 0) != tensor.view_shape.end();
}

std::shared_ptr<Tensor> existing_tensor(const char* name, const aclTensor* handle) {
  auto tensor = find_tensor(handle);
  if (tensor == nullptr) {
    throw InvalidArgument(name, "a destroyed or foreign handle, but needs a live aclTensor");
  }
  return tensor;
}

void check_format(const char* name, int format) {
  if (format == ACL_FORMAT_ND) return;
  throw InvalidArgument(name, text("format ", format_text(format), ", but needs ACL_FORMAT_ND"));
}

void check_dtype(const char* name, int dtype, std::initializer_list<aclDataType> allowed) {
  if (std::ranges::find(allowed, dtype) != allowed.end()) return;
  std::string list;
  for (aclDataType one : allowed) list += (list.empty() ? "" : ", ") + dtype_text(one);
  throw InvalidArgument(name, text("dtype ", dtype_text(dtype), ", but needs ",
                                   allowed.size() > 1 ? "one of " : "", list));
}

void check_not_empty(const char* name, const TensorInfo& tensor) {
  if (!has_no_elements(tensor)) return;
  std::string shape;
  for (int64_t size : tensor.view_shape)
    shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  throw InvalidArgument(name, text("shape [", shape, "] is empty, but needs elements"));
}

TensorDesc desc_of(const TensorInfo& tensor) {
  const size_t kept = std::min<size_t>(tensor.view_shape.size(), TensorDesc::kMaxDims);
  TensorDesc desc;
  desc.dtype = core_dtype(tensor.dtype);
  desc.num_dims = static_cast<int>(tensor.view_shape.size());
  std::copy_n(tensor.view_shape.begin(), kept, desc.shape.begin());
  std::copy_n(tensor.strides.begin(), kept, desc.strides.begin());
  desc.offset = tensor.offset;
  return desc;
}

// The bytes of a view. Unsigned, because a hostile shape may overflow here: the plan rejects it
// before anyone looks at the result.
TensorSlot slot_of(const TensorDesc& desc) {
  const auto element = static_cast<size_t>(dtype_bytes(desc.dtype));
  size_t last = 0;
  for (int dim = 0; dim < std::min(desc.num_dims, TensorDesc::kMaxDims); ++dim) {
    last += (static_cast<size_t>(desc.shape[dim]) - 1) * static_cast<size_t>(desc.strides[dim]);
  }
  return {true, static_cast<size_t>(desc.offset) * element, (last + 1) * element};
}

}  // namespace

TensorDesc Arguments::tensor(size_t slot, const aclTensor* handle,
                             std::initializer_list<aclDataType> allowed) {
  const char* name = op_.slots[slot];
  require(name, handle);
  return existing_tensor(name, handle)->read([&](const TensorInfo& tensor) {
    check_format(name, tensor.format);
    check_dtype(name, tensor.dtype, allowed);
    check_not_empty(name, tensor);
    const TensorDesc desc = desc_of(tensor);
    slots_.views[slot] = slot_of(desc);
    slots_.addresses[slot] = tensor.data;
    return desc;
  });
}

void require(const char* name, const void* pointer) {
  if (pointer == nullptr) throw NullArgument(name, "null, but is mandatory");
}

bool is_absent(const char* name, const aclTensor* handle) {
  return handle == nullptr || existing_tensor(name, handle)->read(has_no_elements);
}

std::optional<EpRange> range_of(const char* name, const aclIntArray* handle) {
  if (handle == nullptr) return std::nullopt;
  const auto values = int_arrays().find(handle);
  if (values == nullptr) {
    throw InvalidArgument(name, "a destroyed or foreign handle, but needs a live aclIntArray");
  }
  if (values->empty()) return std::nullopt;
  if (values->size() != 2) {
    throw InvalidArgument(name, text(values->size(), " values, but needs 2: {begin, end}"));
  }
  return EpRange{values->front(), values->back()};
}

void check_top_k(const char* name, int64_t top_k) {
  if (top_k <= kMaxTopK) return;
  throw InvalidArgument(name, text(top_k, ", but needs at most ", kMaxTopK));
}

void check_padded_mode(bool padded_mode) {
  if (padded_mode) throw InvalidArgument("paddedMode", "true, but only false is supported");
}

bool check_indices() { return environment().check_indices; }

}  // namespace moe::acl
