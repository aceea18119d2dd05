// The gradient of a token permutation on one expert-parallel rank, through the C API, as a program
// for the device is written. Three tokens of two numbers chose two experts each; this rank owns the
// permuted rows [1, 5) of six.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"

namespace {

void Check(int code, const char* call) {
  if (code == ACL_SUCCESS) return;
  const char* message = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s: error %d: %s\n", call, code, message ? message : "(no message)");
  std::exit(1);
}

// Memory on the device with the tensor that describes it.
template <typename T>
class DeviceTensor {
 public:
  DeviceTensor(std::vector<int64_t> shape, aclDataType dtype)
      : shape_(shape), count_(1), tensor_(nullptr, aclDestroyTensor), data_(nullptr, aclrtFree) {
    for (int64_t extent : shape_) count_ *= static_cast<size_t>(extent);
    void* data = nullptr;
    Check(aclrtMalloc(&data, count_ * sizeof(T), ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    data_.reset(data);
    std::vector<int64_t> strides(shape_.size(), 1);
    for (size_t i = shape_.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * shape_[i];
    tensor_.reset(aclCreateTensor(shape_.data(), shape_.size(), dtype, strides.data(), 0,
                                  aclFormat::ACL_FORMAT_ND, shape_.data(), shape_.size(), data));
    if (!tensor_) Check(ACL_ERROR_BAD_ALLOC, "aclCreateTensor");
  }

  // Copies the values that there are: a capacity buffer may be filled in part.
  void Upload(const std::vector<T>& values) {
    Check(aclrtMemcpy(data_.get(), count_ * sizeof(T), values.data(), values.size() * sizeof(T),
                      ACL_MEMCPY_HOST_TO_DEVICE),
          "aclrtMemcpy to the device");
  }

  std::vector<T> Download() const {
    std::vector<T> values(count_);
    Check(aclrtMemcpy(values.data(), count_ * sizeof(T), data_.get(), count_ * sizeof(T),
                      ACL_MEMCPY_DEVICE_TO_HOST),
          "aclrtMemcpy to the host");
    return values;
  }

  aclTensor* get() const { return tensor_.get(); }

 private:
  std::vector<int64_t> shape_;
  size_t count_;
  std::unique_ptr<aclTensor, aclnnStatus (*)(const aclTensor*)> tensor_;
  std::unique_ptr<void, aclError (*)(void*)> data_;
};

void Print(const std::vector<float>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    std::printf("mean result[%zu] is: %f\n", i, static_cast<double>(values[i]));
  }
}

void Run(aclrtStream stream) {
  // Eight rows, though the window has four: buffers with room to spare are everyday.
  DeviceTensor<float> permuted_grad({8, 2}, ACL_FLOAT);
  DeviceTensor<float> permuted_probs_grad({8}, ACL_FLOAT);
  DeviceTensor<int32_t> sorted_indices({6}, ACL_INT32);
  DeviceTensor<float> token_grad({3, 2}, ACL_FLOAT);
  DeviceTensor<float> probs_grad({3, 2}, ACL_FLOAT);
  permuted_grad.Upload({2, 2, 1, 1, 3, 3, 2, 2});
  permuted_probs_grad.Upload({0.2f, 0.5f, 0.4f, 0.4f});
  sorted_indices.Upload({2, 0, 4, 1, 5, 3});

  const int64_t num_topk = 2;
  const int64_t window[] = {1, 5};
  std::unique_ptr<aclIntArray, aclnnStatus (*)(const aclIntArray*)> range(
      aclCreateIntArray(window, 2), aclDestroyIntArray);

  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;
  Check(aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
            permuted_grad.get(), sorted_indices.get(), permuted_probs_grad.get(), num_topk,
            range.get(), false, token_grad.get(), probs_grad.get(), &workspace_size, &executor),
        "aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize");
  std::unique_ptr<void, aclError (*)(void*)> workspace(nullptr, aclrtFree);
  if (workspace_size > 0) {
    void* data = nullptr;
    Check(aclrtMalloc(&data, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    workspace.reset(data);
  }
  Check(aclnnMoeTokenPermuteWithEpGrad(workspace.get(), workspace_size, executor, stream),
        "aclnnMoeTokenPermuteWithEpGrad");
  // Without this the copies below would read what was there before.
  Check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
  Print(token_grad.Download());
  Print(probs_grad.Download());
}

}  // namespace

int main() {
  Check(aclInit(nullptr), "aclInit");
  Check(aclrtSetDevice(0), "aclrtSetDevice");
  aclrtStream stream = nullptr;
  Check(aclrtCreateStream(&stream), "aclrtCreateStream");
  Run(stream);
  Check(aclrtDestroyStream(stream), "aclrtDestroyStream");
  Check(aclrtResetDevice(0), "aclrtResetDevice");
  Check(aclFinalize(), "aclFinalize");
  return 0;
}
