// More than 2^31 elements, by strides, sparse address space and repeated memory: every offset that
// 32 bits cannot hold, forward and gradient.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "moe/unpermute_with_ep.h"
#include "moe/unpermute_with_ep_grad.h"
#include "support/effort.h"
#include "support/guarded_buffer.h"

namespace test {
namespace {

using moe::DType;
using moe::TensorDesc;
using moe::UnpermuteWithEp;
using moe::UnpermuteWithEpGrad;

constexpr int64_t kBeyond = (int64_t{1} << 31) + 5;

template <class T>
void put(const SparseBuffer& buffer, int64_t element, T value) {
  std::memcpy(buffer.data() + element * int64_t{sizeof(T)}, &value, sizeof(T));
}

// Row r of two has the elements 10 r + 1 and 10 r + 2.
void put_rows(const SparseBuffer& buffer, int64_t offset) {
  for (int64_t row = 0; row < 2; ++row) {
    put(buffer, offset + row * kBeyond, static_cast<float>(10 * row + 1));
    put(buffer, offset + row * kBeyond + 1, static_cast<float>(10 * row + 2));
  }
}

// Two tokens of two slots, in the rows 1, -, -, 0 and of the probs 1, 2, 3, 4.
class UnpermuteWithEpHuge : public testing::TestWithParam<std::string> {
 protected:
  UnpermuteWithEpHuge() : indices_(kBytes), probs_(kBytes), rows_(kBytes), grads_(kBytes) {
    const int32_t rows[] = {1, 2, 3, 0};
    for (int64_t slot = 0; slot < 4; ++slot) {
      put(indices_, slot * kBeyond, rows[slot]);
      put(probs_, 7 + slot / 2 * kBeyond + slot % 2 * (kBeyond + 3), static_cast<float>(slot + 1));
    }
    put_rows(rows_, 3);
    put_rows(grads_, kBeyond);
  }

  static constexpr size_t kBytes = static_cast<size_t>((4 * kBeyond + 100) * 4);
  static moe::Engine engine() { return {.num_threads = 2, .kernel = GetParam()}; }
  const TensorDesc indices_desc_ = TensorDesc::strided(DType::kI32, {4}, {kBeyond});
  const TensorDesc probs_desc_ =
      TensorDesc::strided(DType::kF32, {2, 2}, {kBeyond, kBeyond + 3}, 7);
  const TensorDesc rows_desc_ = TensorDesc::strided(DType::kF32, {2, 2}, {kBeyond, 1}, 3);
  const moe::EpRange window_{0, 2};
  SparseBuffer indices_, probs_, rows_, grads_;
};

TEST_P(UnpermuteWithEpHuge, Strides) {
  float out[4];
  UnpermuteWithEp::plan({.permuted_tokens = rows_desc_,
                         .sorted_indices = indices_desc_,
                         .probs = probs_desc_,
                         .top_k = 2,
                         .ep_range = window_,
                         .out = TensorDesc::contiguous(DType::kF32, {2, 2})},
                        engine())
      .bind({rows_.data(), indices_.data(), probs_.data(), out})
      .run();
  EXPECT_EQ(std::vector<float>(out, out + 4), (std::vector<float>{11, 12, 4, 8}));
}

TEST_P(UnpermuteWithEpHuge, StridesOfTheGradient) {
  float rows_grad[4], probs_grad[4];
  std::byte workspace[64];
  const auto plan = UnpermuteWithEpGrad::plan(
      {.unpermuted_tokens_grad = TensorDesc::strided(DType::kF32, {2, 2}, {kBeyond, 1}, kBeyond),
       .sorted_indices = indices_desc_,
       .permuted_tokens = rows_desc_,
       .probs = probs_desc_,
       .top_k = 2,
       .ep_range = window_,
       .permuted_tokens_grad = TensorDesc::contiguous(DType::kF32, {2, 2}),
       .probs_grad = TensorDesc::contiguous(DType::kF32, {2, 2})},
      engine());
  ASSERT_LE(plan.workspace_bytes(), sizeof workspace);
  plan.bind({grads_.data(), indices_.data(), rows_.data(), probs_.data(), rows_grad, probs_grad})
      .run(workspace);
  EXPECT_EQ(std::vector<float>(rows_grad, rows_grad + 4), (std::vector<float>{44, 48, 1, 2}));
  EXPECT_EQ(std::vector<float>(probs_grad, probs_grad + 4), (std::vector<float>{35, 0, 0, 35}));
}

INSTANTIATE_TEST_SUITE_P(Kernels, UnpermuteWithEpHuge,
                         testing::ValuesIn(UnpermuteWithEp::kernel_names()),
                         [](const auto& param) { return param.param; });

// More than 2^31 elements of output. All its pieces but the last are one memory, and all its rows
// are the same: what lies in the last piece was written at the right place.
class HugeOutput {
 public:
  static constexpr int64_t kHidden = 4096, kRowBytes = kHidden * 2;
  HugeOutput() : out_((size_t{1} << 32) + 2 * RepeatedBuffer::kPieceBytes), row_(kHidden) {
    std::iota(row_.begin(), row_.end(), uint16_t{1});
  }

  std::byte* data() const { return out_.data(); }
  int64_t num_rows() const { return static_cast<int64_t>(out_.size()) / kRowBytes; }
  const uint16_t* row() const { return row_.data(); }
  TensorDesc desc() const { return TensorDesc::contiguous(DType::kBF16, {num_rows(), kHidden}); }
  void expect_rows() const {
    const std::byte* last = out_.data() + out_.size() - RepeatedBuffer::kPieceBytes;
    for (size_t at = 0; at < RepeatedBuffer::kPieceBytes; at += kRowBytes) {
      ASSERT_EQ(std::memcmp(last + at, row_.data(), kRowBytes), 0) << at;
    }
  }

 private:
  RepeatedBuffer out_;
  std::vector<uint16_t> row_;
};

TEST(UnpermuteWithEpHugeOutput, Forward) {
  if (kSanitized) GTEST_SKIP() << "writes 4 GiB";
  const HugeOutput out;
  const int32_t index = 0;
  UnpermuteWithEp::plan(
      {.permuted_tokens = TensorDesc::contiguous(DType::kBF16, {1, HugeOutput::kHidden}),
       .sorted_indices = TensorDesc::strided(DType::kI32, {out.num_rows()}, {0}),
       .out = out.desc()},
      {.num_threads = 2})
      .bind({.permuted_tokens = out.row(), .sorted_indices = &index, .out = out.data()})
      .run();
  out.expect_rows();
}

TEST(UnpermuteWithEpHugeOutput, Gradient) {
  if (kSanitized) GTEST_SKIP() << "writes 4 GiB";
  const HugeOutput out;
  std::vector<int32_t> indices(static_cast<size_t>(out.num_rows()));
  std::iota(indices.begin(), indices.end(), 0);
  const auto plan = UnpermuteWithEpGrad::plan(
      {.unpermuted_tokens_grad =
           TensorDesc::strided(DType::kBF16, {out.num_rows(), HugeOutput::kHidden}, {0, 1}),
       .sorted_indices = TensorDesc::contiguous(DType::kI32, {out.num_rows()}),
       .permuted_tokens_grad = out.desc()},
      {.num_threads = 2});
  std::vector<std::byte> workspace(plan.workspace_bytes());
  plan.bind({.unpermuted_tokens_grad = out.row(),
             .sorted_indices = indices.data(),
             .permuted_tokens_grad = out.data()})
      .run(workspace.data());
  out.expect_rows();
}

}  // namespace
}  // namespace test
