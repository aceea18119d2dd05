// MOE_ACL_LAUNCH_BLOCKING=1: phase 2 returns when the outputs are written.
#include <cstdlib>

#include "acl/grad_call.h"

namespace moe::acl_test {
namespace {

// Before the library reads its environment, which it does once.
const int kEnvironment =
    setenv("MOE_ACL_LAUNCH_BLOCKING", "1", 1) + setenv("MOE_ACL_CHECK_INDICES", "1", 1);

using LaunchBlocking = Device;

TEST_F(LaunchBlocking, OutputsAreReadyWithoutSynchronisation) {
  ASSERT_EQ(kEnvironment, 0);
  for (int i = 0; i < 20; ++i) {
    GradCall call;
    const PhaseOne first = call.phase_one();
    Block workspace(first.workspace_size);
    ASSERT_EQ(aclnnMoeTokenPermuteWithEpGrad(workspace.data(), first.workspace_size, first.executor,
                                             stream_),
              ACLNN_SUCCESS);
    EXPECT_EQ(call.floats(kTokenOut, 6), kExampleTokens);
    EXPECT_EQ(call.floats(kProbsOut, 6), kExampleProbs);
  }
}

TEST_F(LaunchBlocking, FailuresStillSurfaceAtSynchronisation) {
  GradCall call;
  call.block(kIndices).upload<int32_t>({0, 0, 1, 2, 3, 4});
  const PhaseOne first = call.phase_one();
  Block workspace(first.workspace_size);
  EXPECT_EQ(aclnnMoeTokenPermuteWithEpGrad(workspace.data(), first.workspace_size, first.executor,
                                           stream_),
            ACLNN_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_ERROR_RT_AICORE_EXCEPTION);
  EXPECT_NE(recent_message().find("sortedIndices"), std::string::npos);
}

}  // namespace
}  // namespace moe::acl_test
