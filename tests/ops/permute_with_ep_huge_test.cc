// More than 2^31 elements, by strides, sparse address space and repeated memory: every offset that
// 32 bits cannot hold, one tensor at a time.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "moe/permute_with_ep.h"
#include "support/effort.h"
#include "support/guarded_buffer.h"

namespace test {
namespace {

using moe::DType;
using moe::PermuteWithEp;
using moe::TensorDesc;

constexpr int64_t kBeyond = (int64_t{1} << 31) + 5;

void put(const SparseBuffer& buffer, int64_t element, float value) {
  std::memcpy(buffer.data() + element * int64_t{sizeof value}, &value, sizeof value);
}

class PermuteWithEpHuge : public testing::TestWithParam<std::string> {
 protected:
  static void run(const PermuteWithEp::Args& args, const PermuteWithEp::Pointers& at) {
    const auto plan = PermuteWithEp::plan(args, {.num_threads = 2, .kernel = GetParam()});
    std::vector<std::byte> workspace(plan.workspace_bytes());
    plan.bind(at).run(workspace.data());
  }
};

TEST_P(PermuteWithEpHuge, StridesAndOffsetsOfTokensAndProbs) {
  const SparseBuffer tokens(static_cast<size_t>((4 * kBeyond + 100) * 4));
  const SparseBuffer probs(static_cast<size_t>((5 * kBeyond + 100) * 4));
  for (int64_t token = 0; token < 3; ++token) {
    const auto value = static_cast<float>(token);
    for (int64_t h = 0; h < 2; ++h) {
      put(tokens, (token + 1) * kBeyond + h, 10 * value + static_cast<float>(h));
    }
    for (int64_t k = 0; k < 2; ++k) {
      put(probs, kBeyond + token + k * (kBeyond + 7), value + 0.5f * static_cast<float>(k));
    }
  }
  const int32_t experts[] = {1, 0, 0, 1, 0, 1};
  float rows[8], row_probs[4];
  int32_t sorted[6];
  run({.tokens = TensorDesc::strided(DType::kF32, {3, 2}, {kBeyond, 1}, kBeyond),
       .indices = TensorDesc::contiguous(DType::kI32, {3, 2}),
       .probs = TensorDesc::strided(DType::kF32, {3, 2}, {1, kBeyond + 7}, kBeyond),
       .ep_range = moe::EpRange{1, 5},
       .permuted_tokens = TensorDesc::contiguous(DType::kF32, {4, 2}),
       .sorted_indices = TensorDesc::contiguous(DType::kI32, {6}),
       .permuted_probs = TensorDesc::contiguous(DType::kF32, {4})},
      {.tokens = tokens.data(),
       .indices = experts,
       .probs = probs.data(),
       .permuted_tokens = rows,
       .sorted_indices = sorted,
       .permuted_probs = row_probs});
  EXPECT_EQ(std::vector<float>(rows, rows + 8), (std::vector<float>{10, 11, 20, 21, 0, 1, 10, 11}));
  EXPECT_EQ(std::vector<float>(row_probs, row_probs + 4), (std::vector<float>{1, 2, 0, 1.5f}));
}

// More than 2^31 elements of output. All its pieces but the last are one memory, and all its rows
// are the same: what lies in the last piece was written at the right place.
TEST_P(PermuteWithEpHuge, Output) {
  if (kSanitized) GTEST_SKIP() << "writes 4 GiB";
  constexpr int64_t kHidden = 4096, kRowBytes = kHidden * 2;
  const RepeatedBuffer out((size_t{1} << 32) + 2 * RepeatedBuffer::kPieceBytes);
  const int64_t num_rows = static_cast<int64_t>(out.size()) / kRowBytes;
  ASSERT_GT(num_rows * kHidden, int64_t{1} << 31);
  std::vector<uint16_t> token(kHidden);
  for (size_t h = 0; h < token.size(); ++h) token[h] = static_cast<uint16_t>(h + 1);
  const int32_t expert = 0;
  std::vector<int32_t> sorted(static_cast<size_t>(num_rows));
  run({.tokens = TensorDesc::strided(DType::kBF16, {num_rows, kHidden}, {0, 1}),
       .indices = TensorDesc::strided(DType::kI32, {num_rows, 1}, {0, 0}),
       .permuted_tokens = TensorDesc::contiguous(DType::kBF16, {num_rows, kHidden}),
       .sorted_indices = TensorDesc::contiguous(DType::kI32, {num_rows})},
      {.tokens = token.data(),
       .indices = &expert,
       .permuted_tokens = out.data(),
       .sorted_indices = sorted.data()});
  const std::byte* last = out.data() + out.size() - RepeatedBuffer::kPieceBytes;
  for (size_t at = 0; at < RepeatedBuffer::kPieceBytes; at += kRowBytes) {
    ASSERT_EQ(std::memcmp(last + at, token.data(), kRowBytes), 0) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, PermuteWithEpHuge,
                         testing::ValuesIn(PermuteWithEp::kernel_names()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace test
