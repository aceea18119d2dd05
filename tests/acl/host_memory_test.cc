// MOE_ACL_ALLOW_HOST_MEMORY=1: tensors may lie anywhere; what begins in a block must still end
// there.
#include <cstdlib>

#include "acl/grad_call.h"

namespace moe::acl_test {
namespace {

// Before the library reads its environment, which it does once.
const int kEnvironment = setenv("MOE_ACL_ALLOW_HOST_MEMORY", "1", 1);

using HostMemory = Device;

TEST_F(HostMemory, TensorsOnTheHost) {
  ASSERT_EQ(kEnvironment, 0);
  std::vector<float> rows = {2, 2, 1, 1, 3, 3, 2, 2}, probs = {0.2f, 0.5f, 0.4f, 0.4f};
  std::vector<float> tokens_out(7, 9.0f), probs_out(7, 9.0f);
  std::vector<int32_t> indices = {2, 0, 4, 1, 5, 3};
  GradCase args;
  args.place = [&](auto& addresses) {
    addresses = {rows.data(), indices.data(), probs.data(), tokens_out.data(), probs_out.data()};
  };
  ASSERT_EQ(GradCall(args).run(stream_), 0) << recent_message();
  std::vector<float> expected = kExampleTokens;
  expected.push_back(9);
  EXPECT_EQ(tokens_out, expected);
  expected = kExampleProbs;
  expected.push_back(9);
  EXPECT_EQ(probs_out, expected);
}

TEST_F(HostMemory, PinnedHostMemory) {
  void* pinned = nullptr;
  ASSERT_EQ(aclrtMallocHost(&pinned, 24), ACL_SUCCESS);
  GradCase args;
  args.place = [&](auto& addresses) { addresses[kTokenOut] = pinned; };
  ASSERT_EQ(GradCall(args).run(stream_), 0) << recent_message();
  EXPECT_EQ(std::vector<float>(static_cast<float*>(pinned), static_cast<float*>(pinned) + 6),
            kExampleTokens);
  args.tensors[kTokenOut].offset = 1;
  expect_rejected(GradCall(args).phase_one(), ACLNN_ERR_PARAM_INVALID,
                  {"tokenGradOut", "28", "24"});
  EXPECT_EQ(aclrtFreeHost(pinned), ACL_SUCCESS);
}

TEST_F(HostMemory, BlocksStillHaveAnEnd) {
  GradCase args;
  args.block_bytes[kTokenOut] = 20;
  expect_rejected(GradCall(args).phase_one(), ACLNN_ERR_PARAM_INVALID,
                  {"tokenGradOut", "24", "20"});
}

TEST_F(HostMemory, OverlapIsStillRejected) {
  std::vector<float> host(64);
  GradCase args;
  args.place = [&](auto& addresses) {
    addresses[kTokenOut] = host.data();
    addresses[kProbsOut] = host.data() + 5;
  };
  expect_rejected(GradCall(args).phase_one(), ACLNN_ERR_PARAM_INVALID, {"overlap"});
}

}  // namespace
}  // namespace moe::acl_test
