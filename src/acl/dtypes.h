// Names and meanings of the enumerators that messages and plans need.
#pragma once

#include <string>

#include "acl/acl_base.h"
#include "moe/tensor.h"

namespace moe::acl {

// "ACL_FLOAT"; for a value that is no enumerator its number.
std::string dtype_text(aclDataType dtype);
// "ACL_FORMAT_ND"; for a value that is no enumerator its number.
std::string format_text(aclFormat format);
// The core's name of a dtype that some operator takes; any other one is a bug of the caller's list
// of allowed dtypes.
DType core_dtype(aclDataType dtype);

}  // namespace moe::acl
