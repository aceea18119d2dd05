// One call of aclnnMoeTokenPermuteWithEpGrad: a valid case of which a test breaks one thing.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "acl/tensors.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"

namespace moe::acl_test {

enum Which { kPermuted, kIndices, kProbs, kTokenOut, kProbsOut, kNumTensors };

// The worked example: tokens_grad (1,1) (4,4) (3,3), probs_grad (.5, 0) (.4, .2) (0, .4).
struct GradCase {
  std::array<TensorSpec, kNumTensors> tensors{{{.shape = {4, 2}},
                                               {.shape = {6}, .dtype = ACL_INT32},
                                               {.shape = {4}},
                                               {.shape = {3, 2}},
                                               {.shape = {3, 2}}}};
  std::array<size_t, kNumTensors> block_bytes{512, 512, 512, 512, 512};
  int64_t top_k = 2;
  std::optional<Dims> range = Dims{1, 5};
  bool padded = false;
  // The last word on addresses and on handles.
  std::function<void(std::array<void*, kNumTensors>&)> place = nullptr;
  std::function<void(std::array<const aclTensor*, kNumTensors>&)> hand = nullptr;
};

class GradCall {
 public:
  explicit GradCall(const GradCase& args = {}) : args_(args) {
    std::array<void*, kNumTensors> addresses;
    for (int i = 0; i < kNumTensors; ++i) {
      blocks_.emplace_back(args_.block_bytes[i]);
      blocks_[i].fill(kPoison);
      addresses[i] = blocks_[i].data();
    }
    fill_example();
    if (args_.place) args_.place(addresses);
    for (int i = 0; i < kNumTensors; ++i) {
      handles_[i] = TensorHandle(args_.tensors[i], addresses[i]);
    }
    if (args_.range) range_ = aclCreateIntArray(args_.range->data(), args_.range->size());
  }
  ~GradCall() { EXPECT_EQ(aclDestroyIntArray(range_), ACLNN_SUCCESS); }
  GradCall(const GradCall&) = delete;
  GradCall& operator=(const GradCall&) = delete;

  PhaseOne phase_one() {
    std::array<const aclTensor*, kNumTensors> handles;
    for (int i = 0; i < kNumTensors; ++i) handles[i] = handles_[i].get();
    if (args_.hand) args_.hand(handles);
    PhaseOne result;
    result.status = aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
        handles[kPermuted], handles[kIndices], handles[kProbs], args_.top_k, range_, args_.padded,
        handles[kTokenOut], handles[kProbsOut], &result.workspace_size, &result.executor);
    result.message = recent_message();
    return result;
  }

  // Both phases and the synchronisation; the first code that is no success.
  int run(aclrtStream stream) {
    const PhaseOne first = phase_one();
    EXPECT_EQ(first.status, ACLNN_SUCCESS) << first.message;
    if (first.status != ACLNN_SUCCESS) return first.status;
    Block workspace(first.workspace_size);
    const aclnnStatus second =
        aclnnMoeTokenPermuteWithEpGrad(first.workspace_size > 0 ? workspace.data() : nullptr,
                                       first.workspace_size, first.executor, stream);
    return second != ACLNN_SUCCESS ? second : aclrtSynchronizeStream(stream);
  }

  Block& block(Which which) { return blocks_[which]; }
  TensorHandle& tensor(Which which) { return handles_[which]; }
  aclIntArray* range() { return range_; }

  std::vector<float> floats(Which which, size_t count) const {
    std::vector<float> values = blocks_[which].download<float>();
    values.resize(count);
    return values;
  }
  // Whether nothing wrote the block of an output from byte `from` on.
  bool untouched_from(Which which, size_t from = 0) const {
    const auto bytes = blocks_[which].download<uint8_t>();
    for (size_t i = from; i < bytes.size(); ++i) {
      if (bytes[i] != kPoison) return false;
    }
    return true;
  }

  static constexpr uint8_t kPoison = 0xa5;

 private:
  void fill_example() {
    for (int i = 0; i < kNumTensors; ++i) {
      if (args_.block_bytes[i] < 32) return;
    }
    blocks_[kPermuted].upload<float>({2, 2, 1, 1, 3, 3, 2, 2});
    blocks_[kIndices].upload<int32_t>({2, 0, 4, 1, 5, 3});
    blocks_[kProbs].upload<float>({0.2f, 0.5f, 0.4f, 0.4f});
  }

  GradCase args_;
  std::vector<Block> blocks_;
  std::array<TensorHandle, kNumTensors> handles_;
  aclIntArray* range_ = nullptr;
};

inline const std::vector<float> kExampleTokens = {1, 1, 4, 4, 3, 3};
inline const std::vector<float> kExampleProbs = {0.5f, 0, 0.4f, 0.2f, 0, 0.4f};

}  // namespace moe::acl_test
