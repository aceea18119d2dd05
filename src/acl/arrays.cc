// aclScalar, the arrays and the lists: created, measured, destroyed.
#include "acl/arrays.h"

#include <memory>
#include <new>
#include <utility>

#include "acl/dtypes.h"
#include "acl/runtime/enums.h"
#include "acl/runtime/error.h"
#include "acl/tensor.h"
#include "moe/error.h"

namespace moe::acl {
namespace {

// No attribute is this long. A larger count is garbage, and copying it would read far beyond
// whatever the pointer names.
constexpr uint64_t kMaxCount = uint64_t{1} << 28;

HandleTable<const Scalar> &scalars() {
  static auto &table = *new HandleTable<const Scalar>(HandleKind::kScalar);
  return table;
}
HandleTable<const FloatArray> &float_arrays() {
  static auto &table = *new HandleTable<const FloatArray>(HandleKind::kFloatArray);
  return table;
}
HandleTable<const BoolArray> &bool_arrays() {
  static auto &table = *new HandleTable<const BoolArray>(HandleKind::kBoolArray);
  return table;
}
HandleTable<const ScalarList> &scalar_lists() {
  static auto &table = *new HandleTable<const ScalarList>(HandleKind::kScalarList);
  return table;
}

template <class Value>
std::shared_ptr<const std::vector<Value>> copied(const Value *values, uint64_t size) {
  if (values == nullptr) size = 0;
  if (size > kMaxCount) {
    throw Failure(ACLNN_ERR_PARAM_INVALID, text("size: ", size, ", but needs at most ", kMaxCount));
  }
  return std::make_shared<const std::vector<Value>>(values, values + size);
}

template <class Handle, class Value>
Handle *create(HandleTable<const std::vector<Value>> &table, const Value *values, uint64_t size) {
  return guarded_handle([&] { return static_cast<Handle *>(table.insert(copied(values, size))); });
}

// A list of handles of which each is null or live.
template <class List, class Element, class Elements>
List *create_list(HandleTable<const std::vector<const Element *>> &table,
                  const Element *const *values, uint64_t size, const Elements &is_live) {
  return guarded_handle([&] {
    auto list = copied(values, size);
    for (size_t i = 0; i < list->size(); ++i) {
      if ((*list)[i] == nullptr || is_live((*list)[i])) continue;
      throw Failure(ACLNN_ERR_PARAM_INVALID,
                    text("value[", i, "]: a destroyed or foreign handle, but needs a live one"));
    }
    return static_cast<List *>(table.insert(std::move(list)));
  });
}

// The object behind a handle that must be live.
template <class Object>
std::shared_ptr<Object> existing(const char *name, std::shared_ptr<Object> object) {
  if (object != nullptr) return object;
  throw Failure(ACLNN_ERR_PARAM_INVALID,
                text(name, ": a destroyed or foreign handle, but needs a live one"));
}

template <class Object>
aclnnStatus destroy(HandleTable<Object> &table, const char *name, const void *handle) {
  return guarded_aclnn([&] {
    if (handle != nullptr) existing(name, table.erase(handle));
  });
}

template <class Object>
aclnnStatus get_size(const HandleTable<Object> &table, const char *name, const void *handle,
                     uint64_t *size) {
  return guarded_aclnn([&] {
    if (handle == nullptr) throw NullArgument(name, "null, but needs a handle");
    if (size == nullptr) throw NullArgument("size", "null, but needs an address to write to");
    *size = existing(name, table.find(handle))->size();
  });
}

std::shared_ptr<const Scalar> scalar_of(const void *value, int dtype) {
  const size_t bytes = size_of_dtype(dtype);
  if (value == nullptr) throw Failure(ACLNN_ERR_PARAM_NULLPTR, "value: null, but needs a value");
  if (bytes == 0) {
    throw Failure(ACLNN_ERR_PARAM_INVALID,
                  text("dataType: ", dtype, ", but needs one with a size"));
  }
  const auto *first = static_cast<const unsigned char *>(value);
  return std::make_shared<const Scalar>(Scalar{dtype, {first, first + bytes}});
}

}  // namespace

HandleTable<const IntArray> &int_arrays() {
  static auto &table = *new HandleTable<const IntArray>(HandleKind::kIntArray);
  return table;
}
HandleTable<const TensorList> &tensor_lists() {
  static auto &table = *new HandleTable<const TensorList>(HandleKind::kTensorList);
  return table;
}

}  // namespace moe::acl

using namespace moe::acl;

aclScalar *aclCreateScalar(void *value, aclDataType dataType) {
  return guarded_handle([&] {
    return static_cast<aclScalar *>(scalars().insert(scalar_of(value, number_of(dataType))));
  });
}

aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size) {
  return create<aclIntArray>(int_arrays(), value, size);
}

aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size) {
  return create<aclFloatArray>(float_arrays(), value, size);
}

aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size) {
  return create<aclBoolArray>(bool_arrays(), value, size);
}

aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size) {
  return create_list<aclTensorList>(tensor_lists(), value, size, [](const aclTensor *tensor) {
    return find_tensor(tensor) != nullptr;
  });
}

aclScalarList *aclCreateScalarList(const aclScalar *const *value, uint64_t size) {
  return create_list<aclScalarList>(scalar_lists(), value, size, [](const aclScalar *scalar) {
    return scalars().find(scalar) != nullptr;
  });
}

aclnnStatus aclDestroyScalar(const aclScalar *scalar) {
  return destroy(scalars(), "scalar", scalar);
}

aclnnStatus aclDestroyIntArray(const aclIntArray *array) {
  return destroy(int_arrays(), "array", array);
}

aclnnStatus aclDestroyFloatArray(const aclFloatArray *array) {
  return destroy(float_arrays(), "array", array);
}

aclnnStatus aclDestroyBoolArray(const aclBoolArray *array) {
  return destroy(bool_arrays(), "array", array);
}

aclnnStatus aclDestroyTensorList(const aclTensorList *array) {
  return guarded_aclnn([&] {
    if (array == nullptr) return;
    const auto list = existing("array", tensor_lists().erase(array));
    // An element that the caller destroyed by itself is gone as it should be.
    for (const aclTensor *tensor : *list) erase_tensor(tensor);
  });
}

aclnnStatus aclDestroyScalarList(const aclScalarList *array) {
  return destroy(scalar_lists(), "array", array);
}

aclnnStatus aclGetIntArraySize(const aclIntArray *array, uint64_t *size) {
  return get_size(int_arrays(), "array", array, size);
}

aclnnStatus aclGetFloatArraySize(const aclFloatArray *array, uint64_t *size) {
  return get_size(float_arrays(), "array", array, size);
}

aclnnStatus aclGetBoolArraySize(const aclBoolArray *array, uint64_t *size) {
  return get_size(bool_arrays(), "array", array, size);
}

aclnnStatus aclGetTensorListSize(const aclTensorList *tensorList, uint64_t *size) {
  return get_size(tensor_lists(), "tensorList", tensorList, size);
}

aclnnStatus aclGetScalarListSize(const aclScalarList *scalarList, uint64_t *size) {
  return get_size(scalar_lists(), "scalarList", scalarList, size);
}
