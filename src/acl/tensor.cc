// aclTensor: created, asked, changed, destroyed.
#include "acl/tensor.h"

#include <algorithm>
#include <string>
#include <type_traits>

#include "acl/runtime/enums.h"
#include "acl/runtime/error.h"
#include "acl/runtime/handles.h"
#include "moe/error.h"

namespace moe::acl {
namespace {

constexpr uint64_t kMaxDims = 64;

HandleTable<Tensor> &tensors() {
  static auto &table = *new HandleTable<Tensor>(HandleKind::kTensor);
  return table;
}

std::vector<int64_t> dims_of(const char *name, const int64_t *dims, uint64_t count) {
  if (count > kMaxDims) {
    throw InvalidArgument(std::string(name) + "Num",
                          text(count, " dimensions, but needs at most ", kMaxDims));
  }
  // No dimensions, no array: an empty vector's data() may be null.
  if (dims == nullptr && count > 0) {
    throw NullArgument(name, text("null, but needs ", count, " sizes"));
  }
  return std::vector<int64_t>(dims, dims + count);
}

std::vector<int64_t> contiguous_strides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;) {
    // Unsigned: sizes are unchecked here. Whatever wraps belongs to a shape that no plan accepts.
    strides[dim - 1] = static_cast<int64_t>(static_cast<uint64_t>(strides[dim]) *
                                            static_cast<uint64_t>(shape[dim]));
  }
  return strides;
}

TensorInfo info_of(const int64_t *view_dims, uint64_t view_dims_num, int dtype,
                   const int64_t *stride, int64_t offset, int format, const int64_t *storage_dims,
                   uint64_t storage_dims_num, void *data) {
  TensorInfo info;
  info.view_shape = dims_of("viewDims", view_dims, view_dims_num);
  info.strides = stride == nullptr ? contiguous_strides(info.view_shape)
                                   : std::vector<int64_t>(stride, stride + view_dims_num);
  info.storage_shape = dims_of("storageDims", storage_dims, storage_dims_num);
  info.offset = offset;
  info.dtype = dtype;
  info.format = format;
  info.data = data;
  return info;
}

std::shared_ptr<Tensor> existing(const aclTensor *handle) {
  if (handle == nullptr) throw NullArgument("tensor", "null, but needs a handle");
  auto tensor = find_tensor(handle);
  if (tensor == nullptr) {
    throw InvalidArgument("tensor", "a destroyed or foreign handle, but needs a live aclTensor");
  }
  return tensor;
}

template <class Value>
void require_out(const char *name, Value *out) {
  if (out == nullptr) throw NullArgument(name, "null, but needs an address to write to");
}

// A member of the tensor into *out.
template <class Value, class Member>
aclnnStatus get(const aclTensor *handle, const char *name, Value *out, Member TensorInfo::*member) {
  return guarded_aclnn([&] {
    const auto tensor = existing(handle);
    require_out(name, out);
    const Member value = tensor->read([member](const TensorInfo &info) { return info.*member; });
    if constexpr (std::is_enum_v<Value>) {
      set_number(out, value);
    } else {
      *out = value;
    }
  });
}

// A list of the tensor as an array that the caller releases with delete[].
aclnnStatus get_list(const aclTensor *handle, const char *values_name, int64_t **values,
                     const char *count_name, uint64_t *count,
                     std::vector<int64_t> TensorInfo::*member) {
  return guarded_aclnn([&] {
    const auto tensor = existing(handle);
    require_out(values_name, values);
    require_out(count_name, count);
    const auto list = tensor->read([member](const TensorInfo &info) { return info.*member; });
    auto *copy = new int64_t[list.size()];
    std::ranges::copy(list, copy);
    *values = copy;
    *count = list.size();
  });
}

}  // namespace

std::shared_ptr<Tensor> find_tensor(const aclTensor *handle) { return tensors().find(handle); }
bool erase_tensor(const aclTensor *handle) { return tensors().erase(handle) != nullptr; }

}  // namespace moe::acl

using namespace moe::acl;

aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t *stride, int64_t offset, aclFormat format,
                           const int64_t *storageDims, uint64_t storageDimsNum, void *tensorData) {
  return guarded_handle([&] {
    auto tensor = std::make_shared<Tensor>(info_of(viewDims, viewDimsNum, number_of(dataType),
                                                   stride, offset, number_of(format), storageDims,
                                                   storageDimsNum, tensorData));
    return static_cast<aclTensor *>(tensors().insert(std::move(tensor)));
  });
}

aclnnStatus aclInitTensor(aclTensor *tensor, const int64_t *viewDims, uint64_t viewDimsNum,
                          aclDataType dataType, const int64_t *stride, int64_t offset,
                          aclFormat format, const int64_t *storageDims, uint64_t storageDimsNum,
                          void *tensorData) {
  return guarded_aclnn([&] {
    const auto target = existing(tensor);
    auto made = info_of(viewDims, viewDimsNum, number_of(dataType), stride, offset,
                        number_of(format), storageDims, storageDimsNum, tensorData);
    target->write([&](TensorInfo &info) { std::swap(info, made); });
  });
}

aclnnStatus aclDestroyTensor(const aclTensor *tensor) {
  return guarded_aclnn([&] {
    if (tensor == nullptr || erase_tensor(tensor)) return;
    existing(tensor);
  });
}

aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **viewDims, uint64_t *viewDimsNum) {
  return get_list(tensor, "viewDims", viewDims, "viewDimsNum", viewDimsNum,
                  &TensorInfo::view_shape);
}

aclnnStatus aclGetStorageShape(const aclTensor *tensor, int64_t **storageDims,
                               uint64_t *storageDimsNum) {
  return get_list(tensor, "storageDims", storageDims, "storageDimsNum", storageDimsNum,
                  &TensorInfo::storage_shape);
}

aclnnStatus aclGetViewStrides(const aclTensor *tensor, int64_t **stridesValue,
                              uint64_t *stridesNum) {
  return get_list(tensor, "stridesValue", stridesValue, "stridesNum", stridesNum,
                  &TensorInfo::strides);
}

aclnnStatus aclGetViewOffset(const aclTensor *tensor, int64_t *offset) {
  return get(tensor, "offset", offset, &TensorInfo::offset);
}

aclnnStatus aclGetFormat(const aclTensor *tensor, aclFormat *format) {
  return get(tensor, "format", format, &TensorInfo::format);
}

aclnnStatus aclGetDataType(const aclTensor *tensor, aclDataType *dataType) {
  return get(tensor, "dataType", dataType, &TensorInfo::dtype);
}

aclnnStatus aclSetRawTensorAddr(aclTensor *tensor, void *addr) {
  return guarded_aclnn([&] {
    if (tensor == nullptr)
      throw Failure(ACLNN_ERR_INNER_NULLPTR, "tensor: null, but needs a handle");
    existing(tensor)->write([addr](TensorInfo &info) { info.data = addr; });
  });
}

aclnnStatus aclGetRawTensorAddr(const aclTensor *tensor, void **addr) {
  return get(tensor, "addr", addr, &TensorInfo::data);
}
