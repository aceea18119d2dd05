// MOE_ACL_CHECK_INDICES=1: indices are verified while running, which needs a workspace.
#include <cstdlib>

#include "acl/grad_call.h"
#include "acl/held_stream.h"
#include "aclnnop/aclnn_moe_token_permute.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"

namespace moe::acl_test {
namespace {

// Before the library reads its environment, which it does once.
const int kEnvironment = setenv("MOE_ACL_CHECK_INDICES", "1", 1);

class CheckedMode : public Device {
 protected:
  void SetUp() override {
    ASSERT_EQ(kEnvironment, 0);
    Device::SetUp();
  }
  void expect_fails(int status, int expected, const std::vector<std::string>& words) {
    const std::string message = recent_message();
    EXPECT_EQ(status, expected) << message;
    for (const std::string& word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << "\"" << message << "\" lacks " << word;
    }
  }
};

TEST_F(CheckedMode, GoodIndicesPass) {
  GradCall call;
  ASSERT_EQ(call.run(stream_), 0) << recent_message();
  EXPECT_EQ(call.floats(kTokenOut, 6), kExampleTokens);
  EXPECT_EQ(call.floats(kProbsOut, 6), kExampleProbs);
}

struct BadIndices {
  std::vector<int32_t> indices;
  const char* slot;
  const char* value;
};

TEST_F(CheckedMode, BadIndicesSurfaceAtSynchronisation) {
  for (const BadIndices& bad :
       {BadIndices{{2, 0, 4, 0, 5, 3}, "3", "0"}, BadIndices{{2, 0, 6, 1, 5, 3}, "2", "6"},
        BadIndices{{-1, 0, 4, 1, 5, 3}, "0", "-1"}}) {
    GradCall call;
    call.block(kIndices).upload(bad.indices);
    expect_fails(call.run(stream_), ACL_ERROR_RT_AICORE_EXCEPTION,
                 {"sortedIndices", bad.slot, bad.value});
    EXPECT_TRUE(call.untouched_from(kTokenOut));
    EXPECT_TRUE(call.untouched_from(kProbsOut));
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS) << "the failure is reported once";
  }
}

TEST_F(CheckedMode, PermuteGradToo) {
  Block grad(32), indices(16), out(16);
  indices.upload<int32_t>({0, 1, 2, 2});
  const TensorHandle grad_tensor({.shape = {4, 2}}, grad.data());
  const TensorHandle indices_tensor({.shape = {4}, .dtype = ACL_INT32}, indices.data());
  const TensorHandle out_tensor({.shape = {2, 2}}, out.data());
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(aclnnMoeTokenPermuteGradGetWorkspaceSize(grad_tensor.get(), indices_tensor.get(), 2,
                                                     false, out_tensor.get(), &size, &executor),
            ACLNN_SUCCESS);
  Block workspace(size);
  ASSERT_EQ(aclnnMoeTokenPermuteGrad(workspace.data(), size, executor, stream_), ACLNN_SUCCESS);
  expect_fails(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_AICORE_EXCEPTION,
               {"sortedIndices", "3", "2"});
}

// The forward: an expert's id that routes its slot nowhere.
TEST_F(CheckedMode, PermuteToo) {
  Block tokens(16), indices(16), rows(32), sorted(16);
  const TensorHandle tokens_tensor({.shape = {2, 2}}, tokens.data());
  const TensorHandle indices_tensor({.shape = {2, 2}, .dtype = ACL_INT32}, indices.data());
  const TensorHandle rows_tensor({.shape = {4, 2}}, rows.data());
  const TensorHandle sorted_tensor({.shape = {4}, .dtype = ACL_INT32}, sorted.data());
  tokens.upload<float>({1, 2, 3, 4});
  const auto run = [&](const std::vector<int32_t>& experts) {
    indices.upload(experts);
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(aclnnMoeTokenPermuteGetWorkspaceSize(tokens_tensor.get(), indices_tensor.get(), 0,
                                                   false, rows_tensor.get(), sorted_tensor.get(),
                                                   &size, &executor),
              ACLNN_SUCCESS);
    Block workspace(size);
    EXPECT_EQ(aclnnMoeTokenPermute(workspace.data(), size, executor, stream_), ACLNN_SUCCESS);
    return aclrtSynchronizeStream(stream_);
  };
  ASSERT_EQ(run({1, 0, 0, 1}), ACL_SUCCESS) << recent_message();
  EXPECT_EQ(rows.download<float>(), (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4}));
  rows.fill(0xa5);
  expect_fails(run({1, 0, -7, 1}), ACL_ERROR_RT_AICORE_EXCEPTION, {"indices", "2", "-7"});
  EXPECT_EQ(rows.download<uint8_t>(), std::vector<uint8_t>(32, 0xa5));
}

// 64 slots, of which the window holds those of the worked example: 8 bytes of workspace.
GradCase with_64_slots() {
  GradCase args;
  args.tensors[kIndices].shape = {64};
  args.tensors[kTokenOut].shape = args.tensors[kProbsOut].shape = {32, 2};
  return args;
}

TEST_F(CheckedMode, WorkspaceIsChecked) {
  GradCall call(with_64_slots());
  std::vector<int32_t> indices = {2, 0, 4, 1, 5, 3};
  for (int32_t i = 6; i < 64; ++i) indices.push_back(i);
  call.block(kIndices).upload(indices);
  const PhaseOne first = call.phase_one();
  ASSERT_EQ(first.status, ACLNN_SUCCESS) << first.message;
  ASSERT_EQ(first.workspace_size, 8u);
  const auto launch = [&](void* workspace, uint64_t bytes) {
    recent_message();
    return aclnnMoeTokenPermuteWithEpGrad(workspace, bytes, first.executor, stream_);
  };
  Block workspace(8);
  std::vector<char> host(8);
  void* past_end = static_cast<char*>(call.block(kProbs).data()) + 512 - 7;
  void* in_output = static_cast<char*>(call.block(kTokenOut).data()) + 255;
  expect_fails(launch(nullptr, 8), ACLNN_ERR_PARAM_NULLPTR, {"workspace", "null", "8"});
  expect_fails(launch(workspace.data(), 7), ACLNN_ERR_PARAM_INVALID, {"workspaceSize: 7", "8"});
  expect_fails(launch(host.data(), 8), ACLNN_ERR_PARAM_INVALID, {"workspace", "aclrtMalloc"});
  expect_fails(launch(past_end, 8), ACLNN_ERR_PARAM_INVALID, {"workspace", "513", "512"});
  expect_fails(launch(in_output, 8), ACLNN_ERR_PARAM_INVALID,
               {"workspace", "tokenGradOut", "overlap"});
  expect_fails(launch(call.block(kIndices).data(), 8), ACLNN_ERR_PARAM_INVALID,
               {"workspace", "sortedIndices", "overlap"});
  EXPECT_TRUE(call.untouched_from(kTokenOut));
  ASSERT_EQ(launch(workspace.data(), UINT64_MAX), ACLNN_SUCCESS) << recent_message();
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(call.floats(kTokenOut, 6), kExampleTokens);
}

// The guard mode and AddressSanitizer see it when queued work does not keep its workspace.
TEST_F(CheckedMode, WorkspaceMayBeFreedWhileTheWorkWaits) {
  GradCall call;
  const PhaseOne first = call.phase_one();
  Block workspace(first.workspace_size);
  {
    HeldStream held(stream_);
    ASSERT_EQ(aclnnMoeTokenPermuteWithEpGrad(workspace.data(), first.workspace_size, first.executor,
                                             stream_),
              ACLNN_SUCCESS);
    workspace.free();
  }
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
  EXPECT_EQ(call.floats(kTokenOut, 6), kExampleTokens);
}

}  // namespace
}  // namespace moe::acl_test
