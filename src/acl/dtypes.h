// Names and meanings of the enumerators that messages and plans need, by their numbers.
#pragma once

#include <cstddef>
#include <string>

#include "acl/acl_base.h"
#include "moe/tensor.h"

namespace moe::acl {

// "ACL_FLOAT"; for a value that is no enumerator its number.
std::string dtype_text(int dtype);
// "ACL_FORMAT_ND"; for a value that is no enumerator its number.
std::string format_text(int format);
// Bytes of an element, of the narrowest ones one byte; 0 for what has none.
size_t size_of_dtype(int dtype);
// The core's name of a dtype that some operator takes; any other one is a bug of the caller's list
// of allowed dtypes.
DType core_dtype(int dtype);

}  // namespace moe::acl
