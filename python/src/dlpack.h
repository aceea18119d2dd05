// What DLPack's ABI lays down, as far as it is needed here: tensors, the capsules of __dlpack__ in
// both their versions, and the C exchange API of torch. Names follow the public specification.
#pragma once

#include <cstdint>

namespace moe::python {

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
constexpr int32_t kDLCPU = 1;
constexpr int32_t kDLCUDAHost = 3;  // pinned memory: the CPU's all the same
constexpr int32_t kDLROCMHost = 11;

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
constexpr uint8_t kDLInt = 0;
constexpr uint8_t kDLFloat = 2;
constexpr uint8_t kDLBfloat = 4;

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major without gaps
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};
constexpr const char* kCapsule = "dltensor";
constexpr const char* kUsedCapsule = "used_dltensor";

struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};
constexpr uint32_t kDLPackMajor = 1;

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};
constexpr uint64_t kDLReadOnly = 1;
constexpr uint64_t kDLIsCopied = 2;
constexpr const char* kVersionedCapsule = "dltensor_versioned";
constexpr const char* kUsedVersionedCapsule = "used_dltensor_versioned";

struct DLPackExchangeAPI {
  DLPackVersion version;
  DLPackExchangeAPI* prev_api;
  int (*managed_tensor_allocator)(DLTensor* prototype, DLManagedTensorVersioned** out,
                                  void* error_ctx,
                                  void (*set_error)(void* error_ctx, const char* kind,
                                                    const char* message));
  int (*managed_tensor_from_py_object_no_sync)(void* object, DLManagedTensorVersioned** out);
  int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned* tensor, void** object);
  int (*dltensor_from_py_object_no_sync)(void* object, DLTensor* out);  // may be null
  int (*current_work_stream)(int32_t device_type, int32_t device_id, void** stream);
};
constexpr const char* kExchangeCapsule = "dlpack_exchange_api";

}  // namespace moe::python
