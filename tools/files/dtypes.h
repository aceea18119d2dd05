// The element types of both file formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "moe/tensor.h"

namespace moe::tools {

enum class FileDType : uint8_t {
  kBool,
  kU8,
  kI8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kF6E2M3,
  kF6E3M2,
  kF4,
  kV1,
  kV2,  // .npy only: elements of 1 or 2 bytes that the file does not name
};

struct DTypeFacts {
  FileDType dtype;
  const char* name;              // as messages and options spell it: "bfloat16"
  const char* safetensors;       // "BF16"; null where that format has no such type
  const char* npy;               // "<f4"; null where that format has none
  int bits;                      // of one element
  std::optional<DType> operand;  // the library's own name for it
};

const DTypeFacts& facts(FileDType dtype);

// By any of the names above; null where there is none. "<V2" is found as npy's.
const DTypeFacts* find_dtype(std::string_view name);
const DTypeFacts* find_safetensors_dtype(std::string_view name);
const DTypeFacts* find_npy_dtype(std::string_view descr);
FileDType file_dtype(DType dtype);

// Bytes of a tensor; nothing where they do not fit 63 bits, a size is negative, or elements smaller
// than a byte leave one half full.
std::optional<int64_t> tensor_bytes(FileDType dtype, std::span<const int64_t> shape);

// How many elements these bytes are.
int64_t num_elements(FileDType dtype, std::span<const std::byte> bytes);

}  // namespace moe::tools
