// What the handles of scalars, arrays and lists stand for.
#pragma once

#include <cstdint>
#include <vector>

#include "acl/acl_base.h"
#include "acl/runtime/handles.h"
#include "aclnn/acl_meta.h"

namespace moe::acl {

struct Scalar {
  int dtype;
  std::vector<unsigned char> bytes;
};

using IntArray = std::vector<int64_t>;
using FloatArray = std::vector<float>;
using BoolArray = std::vector<bool>;
using TensorList =
    std::vector<const aclTensor*>;  // handles, which the list owns; null where absent
using ScalarList = std::vector<const aclScalar*>;  // handles, which the caller keeps

HandleTable<const IntArray>& int_arrays();
HandleTable<const TensorList>& tensor_lists();

}  // namespace moe::acl
