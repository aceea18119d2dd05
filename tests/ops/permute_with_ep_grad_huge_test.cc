// More than 2^31 elements, by strides, sparse address space and repeated memory: every offset that
// 32 bits cannot hold, one tensor at a time.
#include <gtest/gtest.h>

#include <cstring>

#include "ops/grad_case.h"
#include "support/effort.h"

namespace test {
namespace {

using moe::DType;
using moe::PermuteWithEpGrad;
using moe::TensorDesc;

constexpr int64_t kBeyond = (int64_t{1} << 31) + 5;

template <class T>
void put(const SparseBuffer& buffer, int64_t element, T value) {
  std::memcpy(buffer.data() + element * int64_t{sizeof(T)}, &value, sizeof(T));
}

class PermuteWithEpGradHuge : public testing::TestWithParam<std::string> {
 protected:
  moe::Engine engine() const { return {.num_threads = 2, .kernel = GetParam()}; }
};

TEST_P(PermuteWithEpGradHuge, RowStride) {
  const SparseBuffer grad(static_cast<size_t>((3 * kBeyond + 100) * 4));
  for (int64_t row = 0; row < 4; ++row) {
    for (int64_t h = 0; h < 3; ++h) {
      put(grad, 7 + row * kBeyond + h, static_cast<float>(10 * row + h + 1));
    }
  }
  const int32_t indices[] = {3, 0, 2, 1};
  float out[6];
  PermuteWithEpGrad::plan(
      {.permuted_tokens_grad = TensorDesc::strided(DType::kF32, {4, 3}, {kBeyond, 1}, 7),
       .sorted_indices = TensorDesc::contiguous(DType::kI32, {4}),
       .top_k = 2,
       .tokens_grad = TensorDesc::contiguous(DType::kF32, {2, 3})},
      engine())
      .bind({.permuted_tokens_grad = grad.data(), .sorted_indices = indices, .tokens_grad = out})
      .run();
  EXPECT_EQ(std::vector<float>(out, out + 6), (std::vector<float>{32, 34, 36, 32, 34, 36}));
}

TEST_P(PermuteWithEpGradHuge, StridesAndOffsetsOfIndicesAndProbs) {
  const SparseBuffer indices(static_cast<size_t>((4 * kBeyond + 1) * 4));
  const SparseBuffer probs(static_cast<size_t>((4 * kBeyond + 1) * 4));
  const float grad[] = {1, 2, 4};
  for (int64_t i = 0; i < 4; ++i) put(indices, (i + 1) * kBeyond, static_cast<int32_t>(3 - i));
  for (int64_t r = 0; r < 3; ++r) put(probs, (r + 2) * kBeyond, 0.5f + static_cast<float>(r));
  float tokens_grad[2], probs_grad[4];
  PermuteWithEpGrad::plan(
      {.permuted_tokens_grad = TensorDesc::contiguous(DType::kF32, {3, 1}),
       .sorted_indices = TensorDesc::strided(DType::kI32, {4}, {kBeyond}, kBeyond),
       .permuted_probs_grad = TensorDesc::strided(DType::kF32, {3}, {kBeyond}, 2 * kBeyond),
       .top_k = 2,
       .ep_range = moe::EpRange{1, 4},
       .tokens_grad = TensorDesc::contiguous(DType::kF32, {2, 1}),
       .probs_grad = TensorDesc::contiguous(DType::kF32, {2, 2})},
      engine())
      .bind({grad, indices.data(), probs.data(), tokens_grad, probs_grad})
      .run();
  EXPECT_EQ(std::vector<float>(tokens_grad, tokens_grad + 2), (std::vector<float>{6, 1}));
  EXPECT_EQ(std::vector<float>(probs_grad, probs_grad + 4),
            (std::vector<float>{2.5f, 1.5f, 0.5f, 0}));
}

// 2^33 rows of one memory row: the rows' numbers need more than 32 bits.
TEST_P(PermuteWithEpGradHuge, RowNumbers) {
  const int64_t rows = int64_t{1} << 33;
  const float grad[] = {1, 2, 3};
  const int64_t indices[] = {rows - 1, rows, kBeyond, -1, kBeyond * 2, 0};
  float out[9];
  PermuteWithEpGrad::plan(
      {.permuted_tokens_grad = TensorDesc::strided(DType::kF32, {rows, 3}, {0, 1}),
       .sorted_indices = TensorDesc::contiguous(DType::kI64, {6}),
       .top_k = 2,
       .tokens_grad = TensorDesc::contiguous(DType::kF32, {3, 3})},
      engine())
      .bind({.permuted_tokens_grad = grad, .sorted_indices = indices, .tokens_grad = out})
      .run();
  EXPECT_EQ(std::vector<float>(out, out + 9), (std::vector<float>{1, 2, 3, 1, 2, 3, 2, 4, 6}));
}

// More than 2^31 elements of output. All its pieces but the last are one memory, and all its rows
// are the same: what lies in the last piece was written at the right place.
TEST_P(PermuteWithEpGradHuge, Output) {
  if (kSanitized) GTEST_SKIP() << "writes 4 GiB";
  constexpr int64_t kHidden = 4096, kRowBytes = kHidden * 2;
  const RepeatedBuffer out((size_t{1} << 32) + 2 * RepeatedBuffer::kPieceBytes);
  const int64_t num_tokens = static_cast<int64_t>(out.size()) / kRowBytes;
  ASSERT_GT(num_tokens * kHidden, int64_t{1} << 31);
  std::vector<uint16_t> row(kHidden);
  for (size_t h = 0; h < row.size(); ++h) row[h] = static_cast<uint16_t>(h + 1);
  const int32_t index = 0;
  PermuteWithEpGrad::plan(
      {.permuted_tokens_grad = TensorDesc::contiguous(DType::kBF16, {1, kHidden}),
       .sorted_indices = TensorDesc::strided(DType::kI32, {num_tokens}, {0}),
       .tokens_grad = TensorDesc::contiguous(DType::kBF16, {num_tokens, kHidden})},
      engine())
      .bind(
          {.permuted_tokens_grad = row.data(), .sorted_indices = &index, .tokens_grad = out.data()})
      .run();
  const std::byte* last = out.data() + out.size() - RepeatedBuffer::kPieceBytes;
  for (size_t at = 0; at < RepeatedBuffer::kPieceBytes; at += kRowBytes) {
    ASSERT_EQ(std::memcmp(last + at, row.data(), kRowBytes), 0) << at;
  }
}

// One token of more than 2^31 elements.
TEST_P(PermuteWithEpGradHuge, HiddenSize) {
  if (kSanitized) GTEST_SKIP() << "reads and writes 4 GiB";
  const RepeatedBuffer grad((size_t{1} << 32) + 2 * RepeatedBuffer::kPieceBytes);
  const RepeatedBuffer out(grad.size());
  const auto hidden = static_cast<int64_t>(grad.size() / 2);
  // The pattern 0x0101 is a bfloat16; the last piece holds another one.
  std::memset(grad.data(), 1, RepeatedBuffer::kPieceBytes);
  const std::byte* last = out.data() + out.size() - RepeatedBuffer::kPieceBytes;
  std::memset(grad.data() + (last - out.data()), 2, RepeatedBuffer::kPieceBytes);
  const int32_t index = 0;
  PermuteWithEpGrad::plan(
      {.permuted_tokens_grad = TensorDesc::contiguous(DType::kBF16, {1, hidden}),
       .sorted_indices = TensorDesc::contiguous(DType::kI32, {1}),
       .tokens_grad = TensorDesc::contiguous(DType::kBF16, {1, hidden})},
      engine())
      .bind({.permuted_tokens_grad = grad.data(),
             .sorted_indices = &index,
             .tokens_grad = out.data()})
      .run();
  EXPECT_EQ(std::memcmp(out.data(), grad.data(), RepeatedBuffer::kPieceBytes), 0);
  EXPECT_EQ(std::memcmp(last, grad.data() + (last - out.data()), RepeatedBuffer::kPieceBytes), 0);
}

INSTANTIATE_TEST_SUITE_P(Kernels, PermuteWithEpGradHuge,
                         testing::ValuesIn(PermuteWithEpGrad::kernel_names()),
                         [](const auto& param) { return param.param; });

// More than 2^31 slots, whose probabilities alone are the output.
TEST(PermuteWithEpGradHugeSlots, Probs) {
  if (kSanitized) GTEST_SKIP() << "writes 4 GiB";
  constexpr int64_t kTopK = 1024;
  const RepeatedBuffer out((size_t{1} << 32) + 2 * RepeatedBuffer::kPieceBytes);
  const int64_t num_slots = static_cast<int64_t>(out.size()) / 2;
  ASSERT_GT(num_slots, int64_t{1} << 31);
  const uint16_t prob = 0x1234;
  const int32_t index = 0;
  PermuteWithEpGrad::plan(
      {.permuted_tokens_grad = TensorDesc::contiguous(DType::kBF16, {1, 0}),
       .sorted_indices = TensorDesc::strided(DType::kI32, {num_slots}, {0}),
       .permuted_probs_grad = TensorDesc::contiguous(DType::kBF16, {1}),
       .top_k = kTopK,
       .tokens_grad = TensorDesc::contiguous(DType::kBF16, {num_slots / kTopK, 0}),
       .probs_grad = TensorDesc::contiguous(DType::kBF16, {num_slots / kTopK, kTopK})},
      {.num_threads = 2})
      .bind({.sorted_indices = &index, .permuted_probs_grad = &prob, .probs_grad = out.data()})
      .run();
  const auto* last = out.data() + out.size() - RepeatedBuffer::kPieceBytes;
  for (size_t at = 0; at < RepeatedBuffer::kPieceBytes; at += 2) {
    ASSERT_EQ(std::memcmp(last + at, &prob, 2), 0) << at;
  }
}

}  // namespace
}  // namespace test
