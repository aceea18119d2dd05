// Scalars, arrays and lists.
#include "acl/tensors.h"

namespace moe::acl_test {
namespace {

template <class Array>
using SizeOf = aclnnStatus (*)(const Array*, uint64_t*);
template <class Array>
using Destroy = aclnnStatus (*)(const Array*);

// What every array and list does alike.
template <class Array>
void expect_array(Array* array, uint64_t count, SizeOf<Array> size_of, Destroy<Array> destroy) {
  ASSERT_NE(array, nullptr) << recent_message();
  uint64_t size = 99;
  EXPECT_EQ(size_of(array, &size), ACLNN_SUCCESS);
  EXPECT_EQ(size, count);
  EXPECT_EQ(size_of(array, nullptr), ACLNN_ERR_PARAM_NULLPTR);
  size = 99;
  EXPECT_EQ(size_of(nullptr, &size), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(destroy(nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(destroy(array), ACLNN_SUCCESS);
  EXPECT_EQ(destroy(array), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(size_of(array, &size), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(destroy(reinterpret_cast<const Array*>(&size)), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(size_of(reinterpret_cast<const Array*>(&size), &size), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(size, 99u);
}

TEST(Array, Ints) {
  const int64_t values[] = {1, 2, 3};
  const auto expect = [](aclIntArray* array, uint64_t count) {
    expect_array(array, count, aclGetIntArraySize, aclDestroyIntArray);
  };
  expect(aclCreateIntArray(values, 3), 3);
  expect(aclCreateIntArray(values, 0), 0);
  expect(aclCreateIntArray(nullptr, 0), 0);
  expect(aclCreateIntArray(nullptr, 5), 0);
}

TEST(Array, Floats) {
  const float values[] = {1, 2};
  const auto expect = [](aclFloatArray* array, uint64_t count) {
    expect_array(array, count, aclGetFloatArraySize, aclDestroyFloatArray);
  };
  expect(aclCreateFloatArray(values, 2), 2);
  expect(aclCreateFloatArray(nullptr, 2), 0);
}

TEST(Array, Bools) {
  const bool values[] = {true, false, true, true};
  const auto expect = [](aclBoolArray* array, uint64_t count) {
    expect_array(array, count, aclGetBoolArraySize, aclDestroyBoolArray);
  };
  expect(aclCreateBoolArray(values, 4), 4);
  expect(aclCreateBoolArray(values, 0), 0);
}

TEST(Array, AbsurdSizesGiveNull) {
  const int64_t value = 0;
  const float real = 0;
  const bool flag = false;
  const aclTensor* tensor = nullptr;
  const aclScalar* scalar = nullptr;
  for (uint64_t size : {UINT64_MAX, uint64_t{1} << 63, uint64_t{1} << 61, uint64_t{1} << 40}) {
    recent_message();
    EXPECT_EQ(aclCreateIntArray(&value, size), nullptr);
    EXPECT_NE(recent_message().find(std::to_string(size)), std::string::npos);
    EXPECT_EQ(aclCreateFloatArray(&real, size), nullptr);
    EXPECT_EQ(aclCreateBoolArray(&flag, size), nullptr);
    EXPECT_EQ(aclCreateTensorList(&tensor, size), nullptr);
    EXPECT_EQ(aclCreateScalarList(&scalar, size), nullptr);
  }
}

TEST(Array, Scalars) {
  double value = 1.5;
  for (aclDataType dtype : {ACL_FLOAT, ACL_INT64, ACL_DOUBLE, ACL_BOOL, ACL_INT4}) {
    aclScalar* scalar = aclCreateScalar(&value, dtype);
    ASSERT_NE(scalar, nullptr);
    EXPECT_EQ(aclDestroyScalar(scalar), ACLNN_SUCCESS);
    EXPECT_EQ(aclDestroyScalar(scalar), ACLNN_ERR_PARAM_INVALID);
  }
  EXPECT_EQ(aclDestroyScalar(nullptr), ACLNN_SUCCESS);
  recent_message();
  EXPECT_EQ(aclCreateScalar(nullptr, ACL_FLOAT), nullptr);
  EXPECT_NE(recent_message().find("value"), std::string::npos);
  EXPECT_EQ(aclCreateScalar(&value, ACL_STRING), nullptr);
  EXPECT_NE(recent_message().find("dataType"), std::string::npos);
  EXPECT_EQ(aclCreateScalar(&value, ACL_DT_UNDEFINED), nullptr);
}

TEST(Array, DestroyingATensorListDestroysItsTensors) {
  const TensorSpec spec{.shape = {2}};
  aclTensor* tensors[] = {spec.create(nullptr), nullptr, spec.create(nullptr)};
  expect_array(aclCreateTensorList(tensors, 3), 3, aclGetTensorListSize, aclDestroyTensorList);
  EXPECT_EQ(aclDestroyTensor(tensors[0]), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(aclDestroyTensor(tensors[2]), ACLNN_ERR_PARAM_INVALID);
}

TEST(Array, ATensorThatWasDestroyedAloneDoesNotSpoilItsList) {
  aclTensor* tensor = TensorSpec{.shape = {2}}.create(nullptr);
  aclTensorList* list = aclCreateTensorList(&tensor, 1);
  ASSERT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
  EXPECT_EQ(aclDestroyTensorList(list), ACLNN_SUCCESS);
}

TEST(Array, ListsOfBadHandles) {
  aclTensor* tensor = TensorSpec{.shape = {2}}.create(nullptr);
  ASSERT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
  recent_message();
  EXPECT_EQ(aclCreateTensorList(&tensor, 1), nullptr);
  EXPECT_NE(recent_message().find("value[0]"), std::string::npos);
  const aclScalar* scalar = reinterpret_cast<const aclScalar*>(&tensor);
  EXPECT_EQ(aclCreateScalarList(&scalar, 1), nullptr);
}

TEST(Array, ScalarListsLeaveTheirScalars) {
  float value = 1;
  aclScalar* scalar = aclCreateScalar(&value, ACL_FLOAT);
  expect_array(aclCreateScalarList(&scalar, 1), 1, aclGetScalarListSize, aclDestroyScalarList);
  EXPECT_EQ(aclDestroyScalar(scalar), ACLNN_SUCCESS);
}

}  // namespace
}  // namespace moe::acl_test
