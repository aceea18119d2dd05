// What an aclTensor handle stands for.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "aclnn/acl_meta.h"

namespace moe::acl {

// As given to aclCreateTensor, with nothing checked but the number of dimensions: dtype and format
// are any numbers.
struct TensorInfo {
  std::vector<int64_t> view_shape;
  std::vector<int64_t> strides;  // as many as view_shape; elements
  std::vector<int64_t> storage_shape;
  int64_t offset = 0;  // elements
  int dtype = ACL_DT_UNDEFINED;
  int format = ACL_FORMAT_UNDEFINED;
  void* data = nullptr;
};

// Shared between the handle and whoever is reading it while another thread destroys it.
class Tensor {
 public:
  explicit Tensor(TensorInfo info) : info_(std::move(info)) {}

  template <class Function>
  auto read(Function function) const {
    const std::lock_guard lock(mutex_);
    return function(std::as_const(info_));
  }

  template <class Function>
  void write(Function function) {
    const std::lock_guard lock(mutex_);
    function(info_);
  }

 private:
  mutable std::mutex mutex_;
  TensorInfo info_;
};

// The tensor behind a handle; null when the handle is destroyed, foreign or of another kind.
std::shared_ptr<Tensor> find_tensor(const aclTensor* handle);
// Ends a handle; false when there was nothing to end.
bool erase_tensor(const aclTensor* handle);

}  // namespace moe::acl
