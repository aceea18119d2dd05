#include "files/dtypes.h"

#include <algorithm>

namespace moe::tools {
namespace {

constexpr std::optional<DType> kNone;

// .npy files of types that NumPy itself does not have say only how wide an element is ("<V2").
// In the order of the enumeration.
constexpr DTypeFacts kDTypes[] = {
    {FileDType::kBool, "bool", "BOOL", "|b1", 8, kNone},
    {FileDType::kU8, "uint8", "U8", "|u1", 8, kNone},
    {FileDType::kI8, "int8", "I8", "|i1", 8, kNone},
    {FileDType::kI16, "int16", "I16", "<i2", 16, kNone},
    {FileDType::kU16, "uint16", "U16", "<u2", 16, kNone},
    {FileDType::kI32, "int32", "I32", "<i4", 32, DType::kI32},
    {FileDType::kU32, "uint32", "U32", "<u4", 32, kNone},
    {FileDType::kI64, "int64", "I64", "<i8", 64, DType::kI64},
    {FileDType::kU64, "uint64", "U64", "<u8", 64, kNone},
    {FileDType::kF16, "float16", "F16", "<f2", 16, DType::kF16},
    {FileDType::kBF16, "bfloat16", "BF16", nullptr, 16, DType::kBF16},
    {FileDType::kF32, "float32", "F32", "<f4", 32, DType::kF32},
    {FileDType::kF64, "float64", "F64", "<f8", 64, DType::kF64},
    {FileDType::kC64, "complex64", "C64", "<c8", 64, kNone},
    {FileDType::kF8E5M2, "float8_e5m2", "F8_E5M2", nullptr, 8, kNone},
    {FileDType::kF8E4M3, "float8_e4m3", "F8_E4M3", nullptr, 8, kNone},
    {FileDType::kF8E8M0, "float8_e8m0", "F8_E8M0", nullptr, 8, kNone},
    {FileDType::kF8E4M3Fnuz, "float8_e4m3fnuz", "F8_E4M3FNUZ", nullptr, 8, kNone},
    {FileDType::kF8E5M2Fnuz, "float8_e5m2fnuz", "F8_E5M2FNUZ", nullptr, 8, kNone},
    {FileDType::kF6E2M3, "float6_e2m3", "F6_E2M3", nullptr, 6, kNone},
    {FileDType::kF6E3M2, "float6_e3m2", "F6_E3M2", nullptr, 6, kNone},
    {FileDType::kF4, "float4", "F4", nullptr, 4, kNone},
    {FileDType::kV1, "1 unnamed byte", nullptr, "<V1", 8, kNone},
    {FileDType::kV2, "2 unnamed bytes", nullptr, "<V2", 16, kNone},
};

template <class Matches>
const DTypeFacts* find(Matches&& matches) {
  const auto found = std::find_if(std::begin(kDTypes), std::end(kDTypes), matches);
  return found == std::end(kDTypes) ? nullptr : found;
}

bool same(const char* name, std::string_view wanted) { return name && wanted == name; }

}  // namespace

const DTypeFacts& facts(FileDType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }

const DTypeFacts* find_safetensors_dtype(std::string_view name) {
  return find([&](const DTypeFacts& d) { return same(d.safetensors, name); });
}

const DTypeFacts* find_npy_dtype(std::string_view descr) {
  // One byte has no order, and writers do not agree on what to say instead; "<f1" is how
  // float8_e5m2 of another package presents itself.
  if (descr == "<f1" || descr == "|f1") return &facts(FileDType::kF8E5M2);
  if (descr == "|V2") descr = "<V2";
  return find([&](const DTypeFacts& d) {
    return same(d.npy, descr) || (d.npy && d.bits == 8 && descr.size() == 3 &&
                                  descr.substr(1) == d.npy + 1 && descr[0] != '>');
  });
}

const DTypeFacts* find_dtype(std::string_view name) {
  const auto* by_name = find([&](const DTypeFacts& d) { return same(d.name, name); });
  return by_name ? by_name : find_safetensors_dtype(name);
}

FileDType file_dtype(DType dtype) {
  return find([&](const DTypeFacts& d) { return d.operand == dtype; })->dtype;
}

std::optional<int64_t> tensor_bytes(FileDType dtype, std::span<const int64_t> shape) {
  int64_t bits = facts(dtype).bits;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bits, std::max<int64_t>(size, 1), &bits)) return {};
    empty |= size == 0;
  }
  if (empty) return 0;
  if (bits % 8 != 0) return {};
  return bits / 8;
}

int64_t num_elements(FileDType dtype, std::span<const std::byte> bytes) {
  return static_cast<int64_t>(bytes.size()) * 8 / facts(dtype).bits;
}

}  // namespace moe::tools
