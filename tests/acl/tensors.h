// What the tests of the drop-in operators share: a device, tensors made of their description, and
// the phases of a call.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

namespace moe::acl_test {

using Dims = std::vector<int64_t>;

// The newest message of this thread, "" where there is none.
inline std::string recent_message() {
  const char* message = aclGetRecentErrMsg();
  return message == nullptr ? "" : message;
}

inline Dims contiguous_strides(const Dims& shape) {
  Dims strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) {
    strides[i - 1] = static_cast<int64_t>(static_cast<uint64_t>(strides[i]) * shape[i]);
  }
  return strides;
}

// The device is set up once per process: a fixture per test would only hide what lives too long.
class Device : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    aclInit(nullptr);
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  }
  static void TearDownTestSuite() { aclrtResetDevice(0); }
  void SetUp() override {
    ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
    recent_message();
  }
  void TearDown() override { EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS); }

  aclrtStream stream_ = nullptr;
};

// A block of device memory.
class Block {
 public:
  explicit Block(size_t bytes) : bytes_(bytes) {
    EXPECT_EQ(aclrtMalloc(&data_, bytes == 0 ? 1 : bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  }
  ~Block() {
    if (data_ != nullptr) aclrtFree(data_);
  }
  Block(Block&& other) noexcept : data_(other.data_), bytes_(other.bytes_) {
    other.data_ = nullptr;
  }
  Block& operator=(Block&&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  void free() {
    EXPECT_EQ(aclrtFree(data_), ACL_SUCCESS);
    data_ = nullptr;
  }

  void fill(uint8_t byte) { ASSERT_EQ(aclrtMemset(data_, bytes_, byte, bytes_), ACL_SUCCESS); }

  template <class T>
  void upload(const std::vector<T>& values) {
    ASSERT_EQ(aclrtMemcpy(data_, bytes_, values.data(), values.size() * sizeof(T),
                          ACL_MEMCPY_HOST_TO_DEVICE),
              ACL_SUCCESS);
  }
  template <class T>
  std::vector<T> download() const {
    std::vector<T> values(bytes_ / sizeof(T));
    EXPECT_EQ(aclrtMemcpy(values.data(), values.size() * sizeof(T), data_,
                          values.size() * sizeof(T), ACL_MEMCPY_DEVICE_TO_HOST),
              ACL_SUCCESS);
    return values;
  }

 private:
  void* data_ = nullptr;
  size_t bytes_;
};

// A tensor as a program describes it. `elements` is what its block holds.
struct TensorSpec {
  Dims shape;
  aclDataType dtype = ACL_FLOAT;
  std::optional<Dims> strides = std::nullopt;
  int64_t offset = 0;
  aclFormat format = ACL_FORMAT_ND;
  std::optional<Dims> storage = std::nullopt;

  aclTensor* create(void* data) const {
    const Dims& kept = storage ? *storage : shape;
    return aclCreateTensor(shape.data(), shape.size(), dtype, strides ? strides->data() : nullptr,
                           offset, format, kept.data(), kept.size(), data);
  }
};

// A tensor handle with its end.
class TensorHandle {
 public:
  TensorHandle() = default;
  TensorHandle(const TensorSpec& spec, void* data) : handle_(spec.create(data)) {}
  ~TensorHandle() { reset(); }
  TensorHandle(TensorHandle&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  TensorHandle& operator=(TensorHandle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  aclTensor* get() const { return handle_; }
  void reset() {
    if (handle_ != nullptr) {
      EXPECT_EQ(aclDestroyTensor(handle_), ACL_SUCCESS);
    }
    handle_ = nullptr;
  }

 private:
  aclTensor* handle_ = nullptr;
};

// What phase 1 answers. Out-parameters start with values that no call writes.
struct PhaseOne {
  static constexpr uint64_t kUntouched = 0xfeedfacecafebeefull;

  aclnnStatus status = -1;
  uint64_t workspace_size = kUntouched;
  aclOpExecutor* executor = untouched();
  std::string message;

  static aclOpExecutor* untouched() { return reinterpret_cast<aclOpExecutor*>(kUntouched); }
  bool wrote_nothing() const { return workspace_size == kUntouched && executor == untouched(); }
};

inline void expect_rejected(const PhaseOne& got, aclnnStatus status,
                            const std::vector<std::string>& words) {
  EXPECT_EQ(got.status, status) << got.message;
  EXPECT_TRUE(got.wrote_nothing());
  for (const std::string& word : words) {
    EXPECT_NE(got.message.find(word), std::string::npos)
        << "the message \"" << got.message << "\" lacks \"" << word << "\"";
  }
}

inline uint16_t to_bf16(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>(bits >> 16);  // exact for the small integers of these tests
}

inline float from_bf16(uint16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float result = 0;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

}  // namespace moe::acl_test
