#include "acl/dtypes.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <stdexcept>

namespace moe::acl {
namespace {

template <class Value>
struct Named {
  Value value;
  const char* name;
};

constexpr Named<aclDataType> kDtypes[] = {
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

constexpr Named<aclFormat> kFormats[] = {
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

template <class Value>
std::string name_of(std::span<const Named<Value>> names, Value value) {
  const auto found = std::ranges::find(names, value, &Named<Value>::value);
  return found == names.end() ? std::to_string(static_cast<int>(value)) : found->name;
}

}  // namespace

std::string dtype_text(aclDataType dtype) { return name_of<aclDataType>(kDtypes, dtype); }
std::string format_text(aclFormat format) { return name_of<aclFormat>(kFormats, format); }

DType core_dtype(aclDataType dtype) {
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

}  // namespace moe::acl
