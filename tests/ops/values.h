// What the cases of all operators are made of: values of every kind, where tensors lie, and how
// outputs are compared.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "moe/moe.h"
#include "ref/dtypes.h"
#include "ref/routing.h"
#include "support/guarded_buffer.h"

namespace test {

inline constexpr moe::DType kFloatDTypes[] = {moe::DType::kF32, moe::DType::kF16, moe::DType::kBF16,
                                              moe::DType::kF64};

// Names the instances of a suite with a dtype parameter.
inline std::string dtype_param_name(const testing::TestParamInfo<moe::DType>& param) {
  return moe::dtype_name(param.param);
}

enum class Values {
  kFinite,     // of many magnitudes, some zeros and subnormals
  kSmallInts,  // whose sums are exact in every dtype
  kAnyBits     // any pattern: infinities and NaN too
};

// How a tensor lies in memory.
struct Layout {
  int64_t stride = -1;  // of rows, in elements; -1: no gap
  int64_t inner_stride = 1;
  int64_t offset = 0;
  size_t slack_bytes = 0;  // between the last element and the page that faults
};

std::ostream& operator<<(std::ostream& out, const Layout& layout);

ref::Type ref_type(moe::DType dtype);

// A random element, as its bits in the lower bytes.
uint64_t random_bits(moe::DType dtype, Values values, ref::Random& random);
void store_bits(std::byte* data, int64_t index, int64_t bytes, uint64_t bits);

// Bytes up to the last of `rows` rows of `width` elements.
size_t span_bytes(moe::DType dtype, const Layout& layout, int64_t rows, int64_t width);

// Memory for the first `rows` of a tensor's `all_rows`; the others fault, and no other tensor lies
// there.
std::unique_ptr<GuardedBuffer> memory_of_rows(moe::DType dtype, const Layout& layout, int64_t rows,
                                              int64_t all_rows, int64_t width);

// The bytes of an output. A write around it is a test failure.
std::vector<std::byte> take(const GuardedBuffer& buffer, const char* name);

// Bit for bit the same, but for the payloads of NaN.
void expect_same_values(const char* name, moe::DType dtype, const std::vector<std::byte>& got,
                        const std::vector<std::byte>& want);

}  // namespace test
