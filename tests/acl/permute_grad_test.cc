// aclnnMoeTokenPermuteGrad: its results, and each rejection by code and message.
#include <functional>

#include "acl/tensors.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"

namespace moe::acl_test {
namespace {

// Three tokens of two numbers, two experts each; rows (1,2) (3,4) (5,6) (7,8) (9,10) (11,12).
struct Case {
  TensorSpec grad{.shape = {6, 2}};
  TensorSpec indices{.shape = {6}, .dtype = ACL_INT32};
  TensorSpec out{.shape = {3, 2}};
  int64_t top_k = 2;
  bool padded = false;
  size_t grad_bytes = 48, indices_bytes = 24, out_bytes = 64;
  bool null_grad = false, null_indices = false, null_out = false;
  bool out_on_grad = false;
};

class Call {
 public:
  explicit Call(const Case& args = {})
      : args_(args), grad_(args.grad_bytes), indices_(args.indices_bytes), out_(args.out_bytes) {
    out_.fill(0xa5);
    if (args.grad_bytes == 48) grad_.upload<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    if (args.indices_bytes == 24) indices_.upload<int32_t>({2, 0, 4, 1, 5, 3});
    handles_[0] = TensorHandle(args.grad, grad_.data());
    handles_[1] = TensorHandle(args.indices, indices_.data());
    handles_[2] = TensorHandle(args.out, args.out_on_grad ? grad_.data() : out_.data());
  }

  PhaseOne phase_one() {
    PhaseOne result;
    result.status = aclnnMoeTokenPermuteGradGetWorkspaceSize(
        args_.null_grad ? nullptr : handles_[0].get(),
        args_.null_indices ? nullptr : handles_[1].get(), args_.top_k, args_.padded,
        args_.null_out ? nullptr : handles_[2].get(), &result.workspace_size, &result.executor);
    result.message = recent_message();
    return result;
  }

  Block& indices() { return indices_; }

  void expect_result(aclrtStream stream, const std::vector<float>& expected) {
    const PhaseOne first = phase_one();
    ASSERT_EQ(first.status, ACLNN_SUCCESS) << first.message;
    Block workspace(first.workspace_size);
    ASSERT_EQ(
        aclnnMoeTokenPermuteGrad(workspace.data(), first.workspace_size, first.executor, stream),
        ACLNN_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    auto values = out_.download<float>();
    values.resize(expected.size());
    EXPECT_EQ(values, expected);
  }

 private:
  Case args_;
  Block grad_, indices_, out_;
  TensorHandle handles_[3];
};

using PermuteGrad = Device;

TEST_F(PermuteGrad, SumsTheRowsOfEachToken) {
  Call().expect_result(stream_, {6, 8, 12, 14, 18, 20});
}

TEST_F(PermuteGrad, FewerRowsThanSlotsMakeTheWindow) {
  Case args;
  args.grad.shape = {3, 2};
  Call(args).expect_result(stream_, {6, 8, 3, 4, 0, 0});
}

TEST_F(PermuteGrad, MoreRowsThanSlots) {
  Case args;
  args.indices.shape = {4};
  args.out.shape = {2, 2};
  Call(args).expect_result(stream_, {6, 8, 12, 14});
}

TEST_F(PermuteGrad, IndicesOutsideTheRowsContributeZero) {
  Call call;
  call.indices().upload<int32_t>({6, -1, INT32_MAX, INT32_MIN, 5, 0});
  call.expect_result(stream_, {0, 0, 0, 0, 12, 14});
}

TEST_F(PermuteGrad, StridedRows) {
  Case args;
  args.grad = {.shape = {3, 2}, .strides = Dims{4, 2}, .offset = 1};
  Call(args).expect_result(stream_, {12, 16, 6, 8, 0, 0});
}

struct Rejection {
  const char* name;
  std::function<void(Case&)> broken;
  int status;
  std::vector<std::string> words;
};

const std::vector<Rejection>& rejections() {
  static const std::vector<Rejection> kAll = {
      {"NullGrad",
       [](Case& c) { c.null_grad = true; },
       ACLNN_ERR_PARAM_NULLPTR,
       {"permutedOutputGrad", "null"}},
      {"NullIndices",
       [](Case& c) { c.null_indices = true; },
       ACLNN_ERR_PARAM_NULLPTR,
       {"sortedIndices", "null"}},
      {"NullOut", [](Case& c) { c.null_out = true; }, ACLNN_ERR_PARAM_NULLPTR, {"out", "null"}},
      {"GradDouble",
       [](Case& c) { c.grad.dtype = ACL_DOUBLE; },
       ACLNN_ERR_PARAM_INVALID,
       {"permutedOutputGrad", "ACL_DOUBLE"}},
      {"IndicesInt64",
       [](Case& c) { c.indices.dtype = ACL_INT64; },
       ACLNN_ERR_PARAM_INVALID,
       {"sortedIndices", "ACL_INT64", "ACL_INT32"}},
      {"OutOtherType",
       [](Case& c) { c.out.dtype = ACL_BF16; },
       ACLNN_ERR_PARAM_INVALID,
       {"out: ", "bfloat16", "permutedOutputGrad"}},
      {"Format",
       [](Case& c) { c.out.format = ACL_FORMAT_NHWC; },
       ACLNN_ERR_PARAM_INVALID,
       {"out: ", "ACL_FORMAT_NHWC"}},
      {"Rank",
       [](Case& c) { c.grad.shape = {6, 2, 1}; },
       ACLNN_ERR_PARAM_INVALID,
       {"permutedOutputGrad: 3 dimensions"}},
      {"Hidden",
       [](Case& c) { c.out.shape = {3, 1}; },
       ACLNN_ERR_PARAM_INVALID,
       {"out: ", "[3, 1]"}},
      {"Tokens",
       [](Case& c) { c.out.shape = {2, 2}; },
       ACLNN_ERR_PARAM_INVALID,
       {"out: ", "[2, 2]", "[3, 2]"}},
      {"Multiple",
       [](Case& c) { c.top_k = 4; },
       ACLNN_ERR_PARAM_INVALID,
       {"sortedIndices", "numTopk 4"}},
      {"EmptyGrad",
       [](Case& c) { c.grad.shape = {0, 2}; },
       ACLNN_ERR_PARAM_INVALID,
       {"permutedOutputGrad", "empty"}},
      {"EmptyIndices",
       [](Case& c) { c.indices.shape = {0}; },
       ACLNN_ERR_PARAM_INVALID,
       {"sortedIndices", "empty"}},
      {"EmptyOut",
       [](Case& c) { c.out.shape = {3, 0}; },
       ACLNN_ERR_PARAM_INVALID,
       {"out: ", "empty"}},
      {"TopkZero", [](Case& c) { c.top_k = 0; }, ACLNN_ERR_PARAM_INVALID, {"numTopk: 0"}},
      {"Topk513", [](Case& c) { c.top_k = 513; }, ACLNN_ERR_PARAM_INVALID, {"numTopk: 513", "512"}},
      {"Padded", [](Case& c) { c.padded = true; }, ACLNN_ERR_PARAM_INVALID, {"paddedMode"}},
      {"OutGaps",
       [](Case& c) { c.out.strides = Dims{3, 1}; },
       ACLNN_ERR_PARAM_INVALID,
       {"out: ", "contiguous"}},
      {"NegativeStride",
       [](Case& c) { c.grad.strides = Dims{2, -1}; },
       ACLNN_ERR_PARAM_INVALID,
       {"permutedOutputGrad", "-1"}},
      {"PastBlock",
       [](Case& c) { c.grad_bytes = 47; },
       ACLNN_ERR_PARAM_INVALID,
       {"permutedOutputGrad", "48", "47"}},
      {"Overlap",
       [](Case& c) { c.out_on_grad = true; },
       ACLNN_ERR_PARAM_INVALID,
       {"out: overlaps", "permutedOutputGrad"}},
  };
  return kAll;
}

class PermuteGradRejects : public Device, public testing::WithParamInterface<size_t> {};

TEST_P(PermuteGradRejects, ByCodeAndMessage) {
  const Rejection& rejection = rejections()[GetParam()];
  Case args;
  rejection.broken(args);
  expect_rejected(Call(args).phase_one(), rejection.status, rejection.words);
}

INSTANTIATE_TEST_SUITE_P(Each, PermuteGradRejects, testing::Range(size_t{0}, rejections().size()),
                         [](const auto& param) { return rejections()[param.param].name; });

TEST_F(PermuteGrad, NullOutParameters) {
  TensorHandle grad({.shape = {6, 2}}, nullptr), indices({{6}, ACL_INT32}, nullptr),
      out({.shape = {3, 2}}, nullptr);
  uint64_t size = 7;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(aclnnMoeTokenPermuteGradGetWorkspaceSize(grad.get(), indices.get(), 2, false, out.get(),
                                                     nullptr, &executor),
            ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(executor, nullptr);
  EXPECT_EQ(aclnnMoeTokenPermuteGradGetWorkspaceSize(grad.get(), indices.get(), 2, false, out.get(),
                                                     &size, nullptr),
            ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(size, 7u);
}

}  // namespace
}  // namespace moe::acl_test
