// aclTensor: what the creators accept, what the getters answer, what a handle survives.
#include <limits>
#include <memory>
#include <thread>

#include "acl/tensors.h"

namespace moe::acl_test {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

using Getter = aclnnStatus (*)(const aclTensor*, int64_t**, uint64_t*);

Dims list_of(Getter getter, const aclTensor* tensor) {
  int64_t* values = nullptr;
  uint64_t count = 99;
  EXPECT_EQ(getter(tensor, &values, &count), ACLNN_SUCCESS);
  const std::unique_ptr<int64_t[]> owner(values);  // as the caller releases it: delete[]
  EXPECT_NE(values, nullptr);
  return Dims(values, values + count);
}

// Reads the answers as numbers: as enumerators they may have no value.
void expect_numbers(const aclTensor* tensor, int number) {
  int dtype = 0, format = 0;
  EXPECT_EQ(aclGetDataType(tensor, reinterpret_cast<aclDataType*>(&dtype)), ACLNN_SUCCESS);
  EXPECT_EQ(aclGetFormat(tensor, reinterpret_cast<aclFormat*>(&format)), ACLNN_SUCCESS);
  EXPECT_EQ(dtype, number);
  EXPECT_EQ(format, number);
}

TEST(Tensor, AnswersWhatItWasGiven) {
  int data = 0;
  Dims shape = {2, 3}, strides = {5, 2}, storage = {4, 5, 6};
  aclTensor* tensor = aclCreateTensor(shape.data(), 2, ACL_BF16, strides.data(), 7, ACL_FORMAT_NCHW,
                                      storage.data(), 3, &data);
  ASSERT_NE(tensor, nullptr);
  shape = strides = storage = {0, 0, 0};  // copied, so this changes nothing
  EXPECT_EQ(list_of(aclGetViewShape, tensor), (Dims{2, 3}));
  EXPECT_EQ(list_of(aclGetViewStrides, tensor), (Dims{5, 2}));
  EXPECT_EQ(list_of(aclGetStorageShape, tensor), (Dims{4, 5, 6}));
  int64_t offset = 0;
  aclFormat format = ACL_FORMAT_ND;
  aclDataType dtype = ACL_FLOAT;
  void* address = nullptr;
  EXPECT_EQ(aclGetViewOffset(tensor, &offset), ACLNN_SUCCESS);
  EXPECT_EQ(aclGetFormat(tensor, &format), ACLNN_SUCCESS);
  EXPECT_EQ(aclGetDataType(tensor, &dtype), ACLNN_SUCCESS);
  EXPECT_EQ(aclGetRawTensorAddr(tensor, &address), ACLNN_SUCCESS);
  EXPECT_EQ(offset, 7);
  EXPECT_EQ(format, ACL_FORMAT_NCHW);
  EXPECT_EQ(dtype, ACL_BF16);
  EXPECT_EQ(address, &data);
  EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
}

TEST(Tensor, NullStridesMeanContiguous) {
  const TensorHandle tensor({.shape = {2, 3, 4}}, nullptr);
  EXPECT_EQ(list_of(aclGetViewStrides, tensor.get()), (Dims{12, 4, 1}));
}

TEST(Tensor, NoDimensions) {
  const TensorHandle tensor({.shape = {}}, nullptr);
  ASSERT_NE(tensor.get(), nullptr);
  EXPECT_EQ(list_of(aclGetViewShape, tensor.get()), Dims{});
  EXPECT_EQ(list_of(aclGetViewStrides, tensor.get()), Dims{});
  EXPECT_EQ(list_of(aclGetStorageShape, tensor.get()), Dims{});
}

TEST(Tensor, ChecksNothingButNullAndTheNumberOfDimensions) {
  EXPECT_NE(TensorHandle({.shape = Dims(64, 1)}, nullptr).get(), nullptr);
  EXPECT_NE(TensorHandle({.shape = {kMax, kMax, kMin, -1}}, nullptr).get(), nullptr);
  EXPECT_NE(TensorHandle({.shape = {2}, .strides = Dims{kMin}, .offset = kMin}, nullptr).get(),
            nullptr);
  EXPECT_NE(TensorHandle({.shape = {2}, .dtype = ACL_DT_UNDEFINED}, nullptr).get(), nullptr);
  const int64_t dims[65] = {};
  recent_message();
  const auto create = [&](const int64_t* view, uint64_t view_num, const int64_t* storage,
                          uint64_t storage_num) {
    return aclCreateTensor(view, view_num, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, storage,
                           storage_num, nullptr);
  };
  EXPECT_EQ(create(nullptr, 2, dims, 2), nullptr);
  EXPECT_NE(recent_message().find("viewDims"), std::string::npos);
  EXPECT_EQ(create(dims, 2, nullptr, 2), nullptr);
  EXPECT_NE(recent_message().find("storageDims"), std::string::npos);
  EXPECT_EQ(create(dims, 65, dims, 2), nullptr);
  EXPECT_NE(recent_message().find("65"), std::string::npos);
  EXPECT_EQ(create(dims, 2, dims, 65), nullptr);
  EXPECT_NE(recent_message().find("65"), std::string::npos);
  EXPECT_EQ(create(dims, UINT64_MAX, dims, 2), nullptr);
  EXPECT_EQ(create(dims, 2, dims, UINT64_MAX), nullptr);
}

// Programs pass any number for an enumerator: it is kept, given back and named in messages.
TEST(Tensor, NumbersThatAreNoEnumerators) {
  const int64_t dims[] = {2};
  float data[2] = {};
  for (const int number : {1000, -1000, std::numeric_limits<int>::max()}) {
    SCOPED_TRACE(number);
    EXPECT_EQ(aclCreateScalar(data, static_cast<aclDataType>(number)), nullptr);
    EXPECT_NE(recent_message().find(std::to_string(number)), std::string::npos);
    aclTensor* tensor = aclCreateTensor(dims, 1, static_cast<aclDataType>(number), nullptr, 0,
                                        static_cast<aclFormat>(number), dims, 1, data);
    ASSERT_NE(tensor, nullptr);
    expect_numbers(tensor, number);
    ASSERT_EQ(aclInitTensor(tensor, dims, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 1, data),
              ACLNN_SUCCESS);
    ASSERT_EQ(aclInitTensor(tensor, dims, 1, static_cast<aclDataType>(number), nullptr, 0,
                            static_cast<aclFormat>(number), dims, 1, data),
              ACLNN_SUCCESS);
    expect_numbers(tensor, number);
    EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
  }
}

TEST(Tensor, InitTensorReplacesAll) {
  const TensorHandle tensor({.shape = {2, 3}, .offset = 3}, nullptr);
  const Dims shape = {4}, strides = {2};
  int data = 0;
  ASSERT_EQ(aclInitTensor(tensor.get(), shape.data(), 1, ACL_INT32, strides.data(), 1,
                          ACL_FORMAT_NCL, shape.data(), 1, &data),
            ACLNN_SUCCESS);
  EXPECT_EQ(list_of(aclGetViewShape, tensor.get()), shape);
  EXPECT_EQ(list_of(aclGetViewStrides, tensor.get()), strides);
  void* address = nullptr;
  EXPECT_EQ(aclGetRawTensorAddr(tensor.get(), &address), ACLNN_SUCCESS);
  EXPECT_EQ(address, &data);

  EXPECT_EQ(aclInitTensor(nullptr, shape.data(), 1, ACL_INT32, nullptr, 0, ACL_FORMAT_ND,
                          shape.data(), 1, nullptr),
            ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclInitTensor(tensor.get(), nullptr, 1, ACL_INT32, nullptr, 0, ACL_FORMAT_ND,
                          shape.data(), 1, nullptr),
            ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclInitTensor(tensor.get(), shape.data(), 65, ACL_INT32, nullptr, 0, ACL_FORMAT_ND,
                          shape.data(), 1, nullptr),
            ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(list_of(aclGetViewShape, tensor.get()), shape) << "a failure changed the tensor";
}

TEST(Tensor, RawAddress) {
  const TensorHandle tensor({.shape = {2}}, nullptr);
  int data = 0;
  void* address = &data;
  EXPECT_EQ(aclGetRawTensorAddr(tensor.get(), &address), ACLNN_SUCCESS);
  EXPECT_EQ(address, nullptr);
  EXPECT_EQ(aclSetRawTensorAddr(tensor.get(), &data), ACLNN_SUCCESS);
  EXPECT_EQ(aclGetRawTensorAddr(tensor.get(), &address), ACLNN_SUCCESS);
  EXPECT_EQ(address, &data);
  EXPECT_EQ(aclSetRawTensorAddr(nullptr, &data), ACLNN_ERR_INNER_NULLPTR);
}

TEST(Tensor, NullArgumentsOfGetters) {
  const TensorHandle tensor({.shape = {2}}, nullptr);
  int64_t* values = nullptr;
  uint64_t count = 0;
  int64_t offset = 0;
  aclFormat format;
  aclDataType dtype;
  void* address;
  for (Getter getter : {aclGetViewShape, aclGetStorageShape, aclGetViewStrides}) {
    EXPECT_EQ(getter(nullptr, &values, &count), ACLNN_ERR_PARAM_NULLPTR);
    EXPECT_EQ(getter(tensor.get(), nullptr, &count), ACLNN_ERR_PARAM_NULLPTR);
    EXPECT_EQ(getter(tensor.get(), &values, nullptr), ACLNN_ERR_PARAM_NULLPTR);
    EXPECT_EQ(values, nullptr) << "a failure wrote an array that nobody releases";
  }
  recent_message();
  aclGetViewStrides(tensor.get(), nullptr, &count);
  EXPECT_NE(recent_message().find("stridesValue: "), std::string::npos);
  aclGetStorageShape(tensor.get(), &values, nullptr);
  EXPECT_NE(recent_message().find("storageDimsNum: "), std::string::npos);
  EXPECT_EQ(aclGetViewOffset(nullptr, &offset), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclGetViewOffset(tensor.get(), nullptr), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclGetFormat(nullptr, &format), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclGetFormat(tensor.get(), nullptr), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclGetDataType(nullptr, &dtype), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclGetDataType(tensor.get(), nullptr), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclGetRawTensorAddr(nullptr, &address), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclGetRawTensorAddr(tensor.get(), nullptr), ACLNN_ERR_PARAM_NULLPTR);
}

TEST(Tensor, DestroyedAndForeignHandles) {
  EXPECT_EQ(aclDestroyTensor(nullptr), ACLNN_SUCCESS);
  const TensorSpec spec{.shape = {2}};
  aclTensor* destroyed = spec.create(nullptr);
  ASSERT_EQ(aclDestroyTensor(destroyed), ACLNN_SUCCESS);
  // A new tensor may take the place, but never the handle.
  const TensorHandle next(spec, nullptr);
  EXPECT_NE(next.get(), destroyed);
  int64_t on_stack[4] = {};
  aclIntArray* array = aclCreateIntArray(on_stack, 4);
  for (aclTensor* bad : {destroyed, reinterpret_cast<aclTensor*>(on_stack),
                         reinterpret_cast<aclTensor*>(array), reinterpret_cast<aclTensor*>(1)}) {
    int64_t* values = nullptr;
    uint64_t count = 0;
    int64_t offset = 0;
    recent_message();
    EXPECT_EQ(aclDestroyTensor(bad), ACLNN_ERR_PARAM_INVALID);
    EXPECT_NE(recent_message().find("tensor"), std::string::npos);
    EXPECT_EQ(aclGetViewShape(bad, &values, &count), ACLNN_ERR_PARAM_INVALID);
    EXPECT_EQ(aclGetViewOffset(bad, &offset), ACLNN_ERR_PARAM_INVALID);
    EXPECT_EQ(aclSetRawTensorAddr(bad, nullptr), ACLNN_ERR_PARAM_INVALID);
    EXPECT_EQ(
        aclInitTensor(bad, on_stack, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, on_stack, 1, nullptr),
        ACLNN_ERR_PARAM_INVALID);
  }
  EXPECT_EQ(aclDestroyIntArray(array), ACLNN_SUCCESS);
}

// For ThreadSanitizer: one tensor read, changed and destroyed by several threads.
TEST(Tensor, SharedByThreads) {
  const Dims shape = {2, 3};
  aclTensor* tensor = TensorSpec{.shape = shape}.create(nullptr);
  const auto work = [&](int number) {
    for (int i = 0; i < 200; ++i) {
      int64_t* values = nullptr;
      uint64_t count = 0;
      if (aclGetViewShape(tensor, &values, &count) == ACLNN_SUCCESS) {
        EXPECT_EQ(count, 2u);
        delete[] values;
      }
      aclSetRawTensorAddr(tensor, &values);
      aclInitTensor(tensor, shape.data(), 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape.data(), 2,
                    nullptr);
      if (number == 0 && i == 150) {
        EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_ERR_PARAM_INVALID);
}

}  // namespace
}  // namespace moe::acl_test
