// Phase 1's way from handles to descriptions, with the checks that only this layer makes. Throws
// what include/moe/error.h lists; `name` is always the prototype's spelling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "acl/executor.h"
#include "acl/op_spec.h"
#include "aclnn/acl_meta.h"
#include "moe/tensor.h"

namespace moe::acl {

// What the operators' pages allow for values, and for indices.
inline constexpr std::initializer_list<aclDataType> kFloats = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16};
inline constexpr std::initializer_list<aclDataType> kInt32 = {ACL_INT32};
inline constexpr std::initializer_list<aclDataType> kIndexTypes = {ACL_INT32, ACL_INT64};

class Arguments {
 public:
  explicit Arguments(const OpSpec& op) : op_(op) {}

  // Unwraps the tensor of a slot, which becomes a part of the call: handle, format, dtype, and that
  // it is not empty. NullArgument for null.
  TensorDesc tensor(size_t slot, const aclTensor* handle,
                    std::initializer_list<aclDataType> allowed);

  const OpSpec& op() const { return op_; }
  const TensorSlots& slots() const { return slots_; }

 private:
  const OpSpec& op_;
  TensorSlots slots_;
};

// NullArgument where a mandatory argument is missing.
void require(const char* name, const void* pointer);
// Whether an optional tensor is null or has no elements, which mean the same.
bool is_absent(const char* name, const aclTensor* handle);
// The window of a range; none when it is null or of size 0.
std::optional<EpRange> range_of(const char* name, const aclIntArray* handle);
// The upper bound of numTopk, and paddedMode, which only this layer knows.
void check_top_k(const char* name, int64_t top_k);
void check_padded_mode(bool padded_mode);
// Whether plans verify the contents of indices while running.
bool check_indices();

}  // namespace moe::acl
