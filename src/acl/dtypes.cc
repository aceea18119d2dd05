#include "acl/dtypes.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <stdexcept>

#include "acl/acl.h"
#include "acl/runtime/enums.h"

namespace moe::acl {
namespace {

struct Named {
  int number;
  const char* name;
};

constexpr Named kDtypes[] = {
    {ACL_DT_UNDEFINED, "ACL_DT_UNDEFINED"},
    {ACL_FLOAT, "ACL_FLOAT"},
    {ACL_FLOAT16, "ACL_FLOAT16"},
    {ACL_INT8, "ACL_INT8"},
    {ACL_INT32, "ACL_INT32"},
    {ACL_UINT8, "ACL_UINT8"},
    {ACL_INT16, "ACL_INT16"},
    {ACL_UINT16, "ACL_UINT16"},
    {ACL_UINT32, "ACL_UINT32"},
    {ACL_INT64, "ACL_INT64"},
    {ACL_UINT64, "ACL_UINT64"},
    {ACL_DOUBLE, "ACL_DOUBLE"},
    {ACL_BOOL, "ACL_BOOL"},
    {ACL_STRING, "ACL_STRING"},
    {ACL_COMPLEX64, "ACL_COMPLEX64"},
    {ACL_COMPLEX128, "ACL_COMPLEX128"},
    {ACL_BF16, "ACL_BF16"},
    {ACL_INT4, "ACL_INT4"},
    {ACL_UINT1, "ACL_UINT1"},
    {ACL_COMPLEX32, "ACL_COMPLEX32"},
};

constexpr Named kFormats[] = {
    {ACL_FORMAT_UNDEFINED, "ACL_FORMAT_UNDEFINED"},
    {ACL_FORMAT_NCHW, "ACL_FORMAT_NCHW"},
    {ACL_FORMAT_NHWC, "ACL_FORMAT_NHWC"},
    {ACL_FORMAT_ND, "ACL_FORMAT_ND"},
    {ACL_FORMAT_NC1HWC0, "ACL_FORMAT_NC1HWC0"},
    {ACL_FORMAT_HWCN, "ACL_FORMAT_HWCN"},
    {ACL_FORMAT_NDHWC, "ACL_FORMAT_NDHWC"},
    {ACL_FORMAT_FRACTAL_NZ, "ACL_FORMAT_FRACTAL_NZ"},
    {ACL_FORMAT_NCDHW, "ACL_FORMAT_NCDHW"},
    {ACL_FORMAT_NCL, "ACL_FORMAT_NCL"},
};

std::string name_of(std::span<const Named> names, int number) {
  const auto found = std::ranges::find(names, number, &Named::number);
  return found == names.end() ? std::to_string(number) : found->name;
}

}  // namespace

std::string dtype_text(int dtype) { return name_of(kDtypes, dtype); }
std::string format_text(int format) { return name_of(kFormats, format); }

DType core_dtype(int dtype) {
  switch (dtype) {
    case ACL_FLOAT:
      return DType::kF32;
    case ACL_FLOAT16:
      return DType::kF16;
    case ACL_BF16:
      return DType::kBF16;
    case ACL_INT32:
      return DType::kI32;
    case ACL_INT64:
      return DType::kI64;
    default:
      throw std::logic_error("dtype without a counterpart: " + dtype_text(dtype));
  }
}

size_t size_of_dtype(int dtype) {
  switch (dtype) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
    case ACL_INT4:
    case ACL_UINT1:
      return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16:
      return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32:
      return 4;
    case ACL_DOUBLE:
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_COMPLEX64:
      return 8;
    case ACL_COMPLEX128:
      return 16;
    default:
      return 0;
  }
}

}  // namespace moe::acl

size_t aclDataTypeSize(aclDataType dataType) {
  return moe::acl::size_of_dtype(moe::acl::number_of(dataType));
}
