#include "moe/tensor.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace {

using moe::DType;
using moe::TensorDesc;

TEST(Tensor, BytesAndNames) {
  const std::vector<std::pair<int64_t, std::string>> want = {
      {4, "float32"}, {2, "float16"}, {2, "bfloat16"}, {8, "float64"}, {4, "int32"}, {8, "int64"}};
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(moe::dtype_bytes(static_cast<DType>(i)), want[i].first);
    EXPECT_EQ(moe::dtype_name(static_cast<DType>(i)), want[i].second);
  }
}

TEST(Tensor, ContiguousIsRowMajor) {
  const TensorDesc desc = TensorDesc::contiguous(DType::kBF16, {2, 3, 5});
  EXPECT_EQ(desc.dtype, DType::kBF16);
  EXPECT_EQ(desc.num_dims, 3);
  EXPECT_EQ(desc.offset, 0);
  EXPECT_EQ(std::vector<int64_t>(desc.shape.begin(), desc.shape.begin() + 4),
            (std::vector<int64_t>{2, 3, 5, 0}));
  EXPECT_EQ(std::vector<int64_t>(desc.strides.begin(), desc.strides.begin() + 4),
            (std::vector<int64_t>{15, 5, 1, 0}));
}

TEST(Tensor, StridedKeepsWhatItGets) {
  const TensorDesc desc = TensorDesc::strided(DType::kI64, {4, 2}, {-1, 7}, 9);
  EXPECT_EQ(desc.shape[1], 2);
  EXPECT_EQ(desc.strides[0], -1);
  EXPECT_EQ(desc.strides[1], 7);
  EXPECT_EQ(desc.offset, 9);
}

TEST(Tensor, TooManyDimensionsAreCountedAndCut) {
  const std::vector<int64_t> nine(9, 2);
  for (const TensorDesc& desc :
       {TensorDesc::contiguous(DType::kF32, nine), TensorDesc::strided(DType::kF32, nine, nine)}) {
    EXPECT_EQ(desc.num_dims, 9);
    EXPECT_EQ(desc.shape[7], 2);
  }
}

TEST(Tensor, FewerStridesThanSizes) {
  const TensorDesc desc = TensorDesc::strided(DType::kF32, {4, 2}, {3});
  EXPECT_EQ(desc.strides[0], 3);
  EXPECT_EQ(desc.strides[1], 0);
}

TEST(Tensor, HugeShapesDoNotOverflow) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const TensorDesc desc = TensorDesc::contiguous(DType::kF32, {kMax, kMax, kMax});
  EXPECT_EQ(desc.shape[2], kMax);
}

}  // namespace
