// What aclnnMoeTokenPermuteWithEpGrad accepts, and what comes out.
#include <algorithm>
#include <cmath>
#include <random>

#include "acl/grad_call.h"

namespace moe::acl_test {
namespace {

using PermuteWithEpGrad = Device;

const std::vector<float> kZeros(6, 0.0f);

const aclTensor* garbage() { return reinterpret_cast<const aclTensor*>(uintptr_t{0xdeadbeef}); }

// Runs the case and expects the outputs, with nothing written behind them.
void expect_result(GradCall& call, aclrtStream stream, const std::vector<float>& tokens,
                   const std::vector<float>& probs) {
  ASSERT_EQ(call.run(stream), 0) << recent_message();
  EXPECT_EQ(call.floats(kTokenOut, tokens.size()), tokens);
  EXPECT_EQ(call.floats(kProbsOut, probs.size()), probs);
  EXPECT_TRUE(call.untouched_from(kTokenOut, tokens.size() * sizeof(float)));
  EXPECT_TRUE(call.untouched_from(kProbsOut, probs.size() * sizeof(float)));
}

TEST_F(PermuteWithEpGrad, TheWorkedExample) {
  GradCall call;
  expect_result(call, stream_, kExampleTokens, kExampleProbs);
}

TEST_F(PermuteWithEpGrad, NeedsNoWorkspaceForIt) {
  GradCall call;
  const PhaseOne first = call.phase_one();
  ASSERT_EQ(first.status, ACLNN_SUCCESS);
  EXPECT_EQ(first.workspace_size, 0u);
  EXPECT_EQ(aclDestroyAclOpExecutor(first.executor), ACLNN_SUCCESS);
}

TEST_F(PermuteWithEpGrad, RangeOfNoRowsGivesZeros) {
  for (int64_t at : {0, 3, 6}) {
    SCOPED_TRACE(at);
    GradCase args;
    args.range = Dims{at, at};
    GradCall call(args);
    expect_result(call, stream_, kZeros, kZeros);
  }
}

TEST_F(PermuteWithEpGrad, WholeRange) {
  GradCase args;
  args.range = Dims{0, 6};
  args.tensors[kPermuted].shape = {6, 2};
  args.tensors[kProbs].shape = {6};
  GradCall call(args);
  call.block(kPermuted).upload<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  call.block(kProbs).upload<float>({1, 2, 3, 4, 5, 6});
  expect_result(call, stream_, {6, 8, 12, 14, 18, 20}, {3, 1, 5, 2, 6, 4});
}

// The window is then [0, 4); what stands in the places of the probs is not even a tensor.
TEST_F(PermuteWithEpGrad, WithoutRangeProbsAreIgnored) {
  for (const std::optional<Dims>& range : {std::optional<Dims>(), std::optional<Dims>(Dims{})}) {
    for (bool handles_are_garbage : {true, false}) {
      GradCase args;
      args.range = range;
      if (handles_are_garbage) {
        args.hand = [](auto& handles) { handles[kProbs] = handles[kProbsOut] = garbage(); };
      } else {
        args.hand = [](auto& handles) { handles[kProbsOut] = nullptr; };
      }
      GradCall call(args);
      expect_result(call, stream_, {5, 5, 1, 1, 2, 2}, {});
    }
  }
}

TEST_F(PermuteWithEpGrad, WithoutProbsTheirGradientIsIgnored) {
  GradCase args;
  args.hand = [](auto& handles) {
    handles[kProbs] = nullptr;
    handles[kProbsOut] = garbage();
  };
  GradCall no_handle(args);
  expect_result(no_handle, stream_, kExampleTokens, {});

  args.tensors[kProbs] = {{0}};
  args.hand = [](auto& handles) { handles[kProbsOut] = garbage(); };
  GradCall no_elements(args);
  expect_result(no_elements, stream_, kExampleTokens, {});

  args.hand = nullptr;
  GradCall valid_but_unused(args);
  expect_result(valid_but_unused, stream_, kExampleTokens, {});
}

TEST_F(PermuteWithEpGrad, RowsBeyondTheWindowAreNotRead) {
  GradCase args;
  args.tensors[kPermuted].shape = {8, 2};
  args.tensors[kProbs].shape = {7};
  GradCall call(args);
  const float nan = std::nanf("");
  call.block(kPermuted).upload<float>(
      {2, 2, 1, 1, 3, 3, 2, 2, nan, nan, nan, nan, nan, nan, nan, nan});
  call.block(kProbs).upload<float>({0.2f, 0.5f, 0.4f, 0.4f, nan, nan, nan});
  expect_result(call, stream_, kExampleTokens, kExampleProbs);
}

TEST_F(PermuteWithEpGrad, IndicesOutsideEverythingContributeZero) {
  GradCall call;
  call.block(kIndices).upload<int32_t>({-1, 1 << 30, INT32_MIN, INT32_MAX, 5, 0});
  expect_result(call, stream_, kZeros, kZeros);
}

TEST_F(PermuteWithEpGrad, StridedInputs) {
  GradCase args;
  args.tensors[kPermuted] = {.shape = {4, 2}, .strides = Dims{1, 4}, .storage = Dims{8}};
  args.tensors[kIndices] = {
      .shape = {6}, .dtype = ACL_INT32, .strides = Dims{2}, .offset = 1, .storage = Dims{3, 4}};
  args.tensors[kProbs] = {.shape = {4}, .strides = Dims{3}, .offset = 2, .storage = Dims{1, 12, 1}};
  GradCall call(args);
  call.block(kPermuted).upload<float>({2, 1, 3, 2, 20, 10, 30, 20});
  call.block(kIndices).upload<int32_t>({9, 2, 9, 0, 9, 4, 9, 1, 9, 5, 9, 3});
  call.block(kProbs).upload<float>({9, 9, 0.2f, 9, 9, 0.5f, 9, 9, 0.4f, 9, 9, 0.4f});
  expect_result(call, stream_, {1, 10, 4, 40, 3, 30}, kExampleProbs);
}

TEST_F(PermuteWithEpGrad, RepeatedRows) {
  GradCase args;
  args.tensors[kPermuted] = {.shape = {4, 2}, .strides = Dims{0, 0}, .offset = 3};
  args.tensors[kProbs] = {.shape = {4}, .strides = Dims{0}};
  GradCall call(args);
  expect_result(call, stream_, {1, 1, 2, 2, 1, 1}, {0.2f, 0, 0.2f, 0.2f, 0, 0.2f});
}

TEST_F(PermuteWithEpGrad, OutputsAtAnOffset) {
  GradCase args;
  args.tensors[kTokenOut].offset = 5;
  args.tensors[kProbsOut].offset = 7;
  GradCall call(args);
  ASSERT_EQ(call.run(stream_), 0) << recent_message();
  auto tokens = call.floats(kTokenOut, 11), probs = call.floats(kProbsOut, 13);
  EXPECT_EQ(std::vector<float>(tokens.begin() + 5, tokens.end()), kExampleTokens);
  EXPECT_EQ(std::vector<float>(probs.begin() + 7, probs.end()), kExampleProbs);
  EXPECT_TRUE(call.untouched_from(kTokenOut, 44));
  EXPECT_TRUE(call.untouched_from(kProbsOut, 52));
}

// Tensors that share a block, side by side, do not overlap.
TEST_F(PermuteWithEpGrad, OneBlockForAll) {
  GradCase args;
  args.place = [](auto& addresses) {
    for (int i = 1; i < kNumTensors; ++i) {
      addresses[i] = static_cast<char*>(addresses[0]) + 32 * i;
    }
  };
  GradCall call(args);
  std::vector<float> all(128, 0);
  const std::vector<int32_t> indices = {2, 0, 4, 1, 5, 3};
  const std::vector<float> rows = {2, 2, 1, 1, 3, 3, 2, 2}, probs = {0.2f, 0.5f, 0.4f, 0.4f};
  std::copy(rows.begin(), rows.end(), all.begin());
  std::memcpy(&all[8], indices.data(), 24);
  std::copy(probs.begin(), probs.end(), all.begin() + 16);
  call.block(kPermuted).upload(all);
  ASSERT_EQ(call.run(stream_), 0) << recent_message();
  const auto out = call.floats(kPermuted, 40);
  EXPECT_EQ(std::vector<float>(out.begin() + 24, out.begin() + 30), kExampleTokens);
  EXPECT_EQ(std::vector<float>(out.begin() + 32, out.begin() + 38), kExampleProbs);
}

TEST_F(PermuteWithEpGrad, FillsItsBlocksToTheLastByte) {
  GradCase args;
  args.block_bytes = {32, 24, 16, 24, 24};
  GradCall call(args);
  call.block(kPermuted).upload<float>({2, 2, 1, 1, 3, 3, 2, 2});
  call.block(kIndices).upload<int32_t>({2, 0, 4, 1, 5, 3});
  call.block(kProbs).upload<float>({0.2f, 0.5f, 0.4f, 0.4f});
  expect_result(call, stream_, kExampleTokens, kExampleProbs);
}

TEST_F(PermuteWithEpGrad, StrideOfASingleRowMayBeAnything) {
  GradCase args;
  args.range = Dims{2, 3};
  args.tensors[kPermuted] = {.shape = {1, 2}, .strides = Dims{-77, 1}};
  args.tensors[kProbs] = {.shape = {1}, .strides = Dims{INT64_MIN}};
  GradCall call(args);
  expect_result(call, stream_, {2, 2, 0, 0, 0, 0}, {0.2f, 0, 0, 0, 0, 0});
}

TEST_F(PermuteWithEpGrad, TopkOf512) {
  GradCase args;
  args.top_k = 512;
  args.range = Dims{0, 512};
  args.block_bytes.fill(8192);
  args.tensors = {{{{512, 2}}, {{512}, ACL_INT32}, {{512}}, {{1, 2}}, {{1, 512}}}};
  GradCall call(args);
  std::vector<int32_t> indices(512);
  for (int i = 0; i < 512; ++i) indices[i] = 511 - i;
  std::vector<float> probs(512);
  for (int i = 0; i < 512; ++i) probs[i] = static_cast<float>(i);
  call.block(kPermuted).upload(std::vector<float>(1024, 1.0f));
  call.block(kIndices).upload(indices);
  call.block(kProbs).upload(probs);
  std::reverse(probs.begin(), probs.end());
  expect_result(call, stream_, {512, 512}, probs);
}

// Every pair of dtypes; each output has its own input's.
template <class T>
void put(Block& block, aclDataType dtype, const std::vector<float>& values, T narrowed) {
  if (dtype == ACL_FLOAT) return block.upload(values);
  std::vector<uint16_t> bits;
  for (float value : values) bits.push_back(narrowed(value));
  block.upload(bits);
}

uint16_t bits_of(aclDataType dtype, float value) {
  return dtype == ACL_BF16 ? to_bf16(value) : aclFloatToFloat16(value);
}

std::vector<float> get(const Block& block, aclDataType dtype, size_t count) {
  std::vector<float> values;
  if (dtype == ACL_FLOAT) {
    values = block.download<float>();
  } else {
    for (uint16_t bits : block.download<uint16_t>()) {
      values.push_back(dtype == ACL_BF16 ? from_bf16(bits) : aclFloat16ToFloat(bits));
    }
  }
  values.resize(count);
  return values;
}

TEST_F(PermuteWithEpGrad, EveryPairOfDtypes) {
  for (aclDataType tokens : {ACL_FLOAT, ACL_FLOAT16, ACL_BF16}) {
    for (aclDataType probs : {ACL_FLOAT, ACL_FLOAT16, ACL_BF16}) {
      SCOPED_TRACE(testing::Message() << "dtypes " << tokens << " and " << probs);
      GradCase args;
      args.tensors[kPermuted].dtype = args.tensors[kTokenOut].dtype = tokens;
      args.tensors[kProbs].dtype = args.tensors[kProbsOut].dtype = probs;
      GradCall call(args);
      put(call.block(kPermuted), tokens, {2, 2, 1, 1, 3, 3, 2, 2},
          [&](float value) { return bits_of(tokens, value); });
      put(call.block(kProbs), probs, {2, 5, 4, 40},
          [&](float value) { return bits_of(probs, value); });
      ASSERT_EQ(call.run(stream_), 0) << recent_message();
      EXPECT_EQ(get(call.block(kTokenOut), tokens, 6), kExampleTokens);
      EXPECT_EQ(get(call.block(kProbsOut), probs, 6), (std::vector<float>{5, 0, 40, 2, 0, 4}));
      EXPECT_TRUE(call.untouched_from(kTokenOut, 6 * aclDataTypeSize(tokens)));
      EXPECT_TRUE(call.untouched_from(kProbsOut, 6 * aclDataTypeSize(probs)));
    }
  }
}

// Random shapes, windows and strides against the formula, in integers, where sums are exact.
struct RandomCase {
  explicit RandomCase(uint32_t seed) : random(seed) {
    num_tokens = pick(1, 9), top_k = pick(1, 5), hidden = pick(1, 40);
    slots = num_tokens * top_k;
    begin = pick(0, slots), end = pick(begin, slots);
    rows = std::max<int64_t>(1, end - begin + pick(0, 3));
    row_stride = hidden + pick(0, 3);
    indices.resize(slots);
    for (int64_t i = 0; i < slots; ++i) indices[i] = static_cast<int32_t>(i);
    std::shuffle(indices.begin(), indices.end(), random);
    grad.resize(rows * row_stride);
    for (float& value : grad) value = static_cast<float>(pick(-8, 8));
    probs.resize(rows);
    for (float& value : probs) value = static_cast<float>(pick(-8, 8));
  }
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  GradCase args() const {
    GradCase result;
    result.top_k = top_k;
    result.range = Dims{begin, end};
    result.tensors[kPermuted] = {.shape = {rows, hidden}, .strides = Dims{row_stride, 1}};
    result.tensors[kIndices].shape = {slots};
    result.tensors[kProbs].shape = {rows};
    result.tensors[kTokenOut].shape = {num_tokens, hidden};
    result.tensors[kProbsOut].shape = {num_tokens, top_k};
    result.block_bytes.fill(16384);
    return result;
  }
  void expected(std::vector<float>& tokens, std::vector<float>& probs_grad) const {
    tokens.assign(num_tokens * hidden, 0);
    probs_grad.assign(slots, 0);
    for (int64_t slot = 0; slot < slots; ++slot) {
      const int64_t row = indices[slot] - begin;
      if (row < 0 || row >= end - begin) continue;
      probs_grad[slot] = probs[row];
      for (int64_t h = 0; h < hidden; ++h) {
        tokens[slot / top_k * hidden + h] += grad[row * row_stride + h];
      }
    }
  }

  std::mt19937 random;
  int64_t num_tokens, top_k, hidden, slots, begin, end, rows, row_stride;
  std::vector<int32_t> indices;
  std::vector<float> grad, probs;
};

TEST_F(PermuteWithEpGrad, RandomShapes) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const RandomCase random(seed);
    GradCall call(random.args());
    call.block(kPermuted).upload(random.grad);
    call.block(kIndices).upload(random.indices);
    call.block(kProbs).upload(random.probs);
    std::vector<float> tokens, probs_grad;
    random.expected(tokens, probs_grad);
    expect_result(call, stream_, tokens, probs_grad);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace moe::acl_test
