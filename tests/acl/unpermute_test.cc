// The four unpermute operators of the C API: results, the edge rules, and rejections by code and
// message.
#include <array>
#include <functional>

#include "acl/tensors.h"
#include "aclnnop/aclnn_moe_token_unpermute.h"
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep_grad.h"

namespace moe::acl_test {
namespace {

constexpr uint8_t kPoison = 0xa5;

enum Which { kRows, kIndices, kProbs, kGrad, kTokensOut, kRowsOut, kProbsOut, kNumTensors };

// Three tokens of two numbers with two experts each; the forward writes kTokensOut, the gradient
// kRowsOut and kProbsOut.
struct Case {
  bool with_ep = true;
  std::array<TensorSpec, kNumTensors> tensors{{{.shape = {4, 2}},
                                               {.shape = {6}, .dtype = ACL_INT32},
                                               {.shape = {3, 2}},
                                               {.shape = {3, 2}},
                                               {.shape = {3, 2}},
                                               {.shape = {4, 2}},
                                               {.shape = {3, 2}}}};
  std::array<bool, kNumTensors> null{};
  int64_t top_k = 2;
  std::optional<Dims> range = Dims{1, 5};
  std::optional<Dims> restore_shape = std::nullopt;
  bool padded = false;
  bool output_on_input = false;
};

class Call {
 public:
  explicit Call(const Case& args = {}) : args_(args) {
    for (int i = 0; i < kNumTensors; ++i) {
      blocks_.emplace_back(512);
      blocks_[i].fill(kPoison);
    }
    blocks_[kRows].upload<float>({1, 2, 3, 4, 5, 6, 7, 8});
    blocks_[kIndices].upload<int32_t>({2, 0, 4, 1, 5, 3});
    blocks_[kProbs].upload<float>({0.5f, 4, 2, 1, 3, 0});
    blocks_[kGrad].upload<float>({1, 1, 1, 2, 10, 20});
    for (int i = 0; i < kNumTensors; ++i) {
      const int place = args.output_on_input && i >= kTokensOut ? int{kIndices} : i;
      handles_[i] = TensorHandle(args.tensors[i], blocks_[place].data());
    }
    if (args.range) range_ = aclCreateIntArray(args.range->data(), args.range->size());
    if (args.restore_shape) {
      restore_ = aclCreateIntArray(args.restore_shape->data(), args.restore_shape->size());
    }
  }
  ~Call() {
    aclDestroyIntArray(range_);
    aclDestroyIntArray(restore_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  PhaseOne forward() {
    PhaseOne r;
    if (args_.with_ep) {
      r.status = aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(
          at(kRows), at(kIndices), at(kProbs), args_.top_k, range_, args_.padded, restore_,
          at(kTokensOut), &r.workspace_size, &r.executor);
    } else {
      r.status = aclnnMoeTokenUnpermuteGetWorkspaceSize(at(kRows), at(kIndices), at(kProbs),
                                                        args_.padded, restore_, at(kTokensOut),
                                                        &r.workspace_size, &r.executor);
    }
    r.message = recent_message();
    return r;
  }

  PhaseOne backward() {
    PhaseOne r;
    if (args_.with_ep) {
      r.status = aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
          at(kGrad), at(kIndices), at(kRows), at(kProbs), args_.padded, restore_, range_,
          args_.top_k, at(kRowsOut), at(kProbsOut), &r.workspace_size, &r.executor);
    } else {
      r.status = aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
          at(kRows), at(kGrad), at(kIndices), at(kProbs), args_.padded, restore_, at(kRowsOut),
          at(kProbsOut), &r.workspace_size, &r.executor);
    }
    r.message = recent_message();
    return r;
  }

  // Phase 2 and the synchronisation of what a phase 1 gave.
  void finish(const PhaseOne& first, bool is_forward, aclrtStream stream) {
    ASSERT_EQ(first.status, ACLNN_SUCCESS) << first.message;
    Block workspace(first.workspace_size);
    const auto run =
        is_forward
            ? (args_.with_ep ? aclnnMoeTokenUnpermuteWithEp : aclnnMoeTokenUnpermute)
            : (args_.with_ep ? aclnnMoeTokenUnpermuteWithEpGrad : aclnnMoeTokenUnpermuteGrad);
    ASSERT_EQ(run(workspace.data(), first.workspace_size, first.executor, stream), ACLNN_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  }
  void run_forward(aclrtStream stream) { finish(forward(), true, stream); }
  void run_backward(aclrtStream stream) { finish(backward(), false, stream); }

  std::vector<float> floats(Which which, size_t count) {
    auto values = blocks_[which].download<float>();
    values.resize(count);
    return values;
  }
  bool untouched(Which which) {
    const auto bytes = blocks_[which].download<uint8_t>();
    return bytes == std::vector<uint8_t>(bytes.size(), kPoison);
  }
  Block& block(Which which) { return blocks_[which]; }

 private:
  aclTensor* at(Which which) { return args_.null[which] ? nullptr : handles_[which].get(); }

  Case args_;
  std::vector<Block> blocks_;
  std::array<TensorHandle, kNumTensors> handles_;
  aclIntArray* range_ = nullptr;
  aclIntArray* restore_ = nullptr;
};

Case with(const std::function<void(Case&)>& change) {
  Case c;
  change(c);
  return c;
}
Case plain(const std::function<void(Case&)>& change = [](Case&) {}) {
  Case c = with([](Case& p) {
    p.with_ep = false;
    p.range.reset();
    p.tensors[kRows].shape = p.tensors[kRowsOut].shape = {6, 2};
  });
  change(c);
  return c;
}

using Unpermute = Device;

using Floats = std::vector<float>;

// Slots lead to the rows 2 0 4 1 5 3 of all, so to 1 - 3 0 - 2 of the window; the last prob is 0.
TEST_F(Unpermute, WithRange) {
  Call call;
  call.run_forward(stream_);
  EXPECT_EQ(call.floats(kTokensOut, 6), (Floats{1.5f, 2, 15, 18, 0, 0}));
  call.run_backward(stream_);
  EXPECT_EQ(call.floats(kRowsOut, 8), (Floats{1, 2, 0.5f, 0.5f, 0, 0, 2, 4}));
  EXPECT_EQ(call.floats(kProbsOut, 6), (Floats{7, 0, 23, 5, 0, 170}));
}

TEST_F(Unpermute, WithoutRangeTheRowsAreTheWindow) {
  for (const bool with_ep : {false, true}) {
    Case args = plain();
    args.with_ep = with_ep;
    Call call(args);
    call.block(kRows).upload<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    call.run_forward(stream_);
    EXPECT_EQ(call.floats(kTokensOut, 6), (Floats{6.5f, 11, 21, 24, 33, 36}));
    call.run_backward(stream_);
    EXPECT_EQ(call.floats(kRowsOut, 12), (Floats{4, 4, 1, 2, 0.5f, 0.5f, 0, 0, 2, 4, 30, 60}));
    EXPECT_EQ(call.floats(kProbsOut, 6), (Floats{11, 3, 29, 11, 350, 230}));
  }
}

TEST_F(Unpermute, AnEmptyRangeArrayIsNone) {
  Call call(with([](Case& c) {
    c.range = Dims{};
    c.tensors[kRows].shape = {6, 2};
  }));
  call.block(kRows).upload<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  call.run_forward(stream_);
  EXPECT_EQ(call.floats(kTokensOut, 6), (Floats{6.5f, 11, 21, 24, 33, 36}));
}

// Without probs K is numTopk in the EP form, and 1 in the plain one.
TEST_F(Unpermute, WithoutProbs) {
  for (const bool empty : {false, true}) {
    const auto no_probs = [empty](Case& c) {
      if (empty) {
        c.tensors[kProbs].shape = {0, 2};
      } else {
        c.null[kProbs] = true;
      }
    };
    Call call(with(no_probs));
    call.run_forward(stream_);
    EXPECT_EQ(call.floats(kTokensOut, 6), (Floats{3, 4, 8, 10, 5, 6}));
    call.run_backward(stream_);
    EXPECT_EQ(call.floats(kRowsOut, 8), (Floats{1, 2, 1, 1, 10, 20, 1, 2}));
    EXPECT_TRUE(call.untouched(kProbsOut)) << "without probs it is ignored";

    Call one(plain([&](Case& c) {
      no_probs(c);
      c.tensors[kIndices].shape = {3};
      c.tensors[kRows].shape = c.tensors[kRowsOut].shape = {4, 2};
    }));
    one.block(kIndices).upload<int32_t>({2, 0, 9});
    one.run_forward(stream_);
    EXPECT_EQ(one.floats(kTokensOut, 6), (Floats{5, 6, 1, 2, 0, 0}));
    one.run_backward(stream_);
    EXPECT_EQ(one.floats(kRowsOut, 8), (Floats{1, 2, 0, 0, 1, 1, 0, 0}));
  }
}

TEST_F(Unpermute, AnEmptyWindowGivesZeros) {
  Call call(with([](Case& c) { c.range = Dims{3, 3}; }));
  call.run_forward(stream_);
  EXPECT_EQ(call.floats(kTokensOut, 6), Floats(6));
  call.run_backward(stream_);
  EXPECT_EQ(call.floats(kRowsOut, 8), Floats(8));
  EXPECT_EQ(call.floats(kProbsOut, 6), Floats(6));
}

TEST_F(Unpermute, PaddingRowsBecomeZeros) {
  Call call(with([](Case& c) { c.tensors[kRows].shape = c.tensors[kRowsOut].shape = {7, 2}; }));
  call.run_backward(stream_);
  EXPECT_EQ(call.floats(kRowsOut, 14), (Floats{1, 2, 0.5f, 0.5f, 0, 0, 2, 4, 0, 0, 0, 0, 0, 0}));
}

TEST_F(Unpermute, ProbsGradIsOptional) {
  for (const bool rows_too : {false, true}) {
    Call call(with([&](Case& c) {
      c.null[kProbsOut] = true;
      c.null[kRows] = rows_too;
    }));
    call.run_backward(stream_);
    EXPECT_EQ(call.floats(kRowsOut, 8), (Floats{1, 2, 0.5f, 0.5f, 0, 0, 2, 4}));
  }
}

TEST_F(Unpermute, ProbsOfAnotherType) {
  Call call(with([](Case& c) { c.tensors[kProbs].dtype = c.tensors[kProbsOut].dtype = ACL_BF16; }));
  call.block(kProbs).upload<uint16_t>(
      {to_bf16(0.5f), to_bf16(4), to_bf16(2), to_bf16(1), to_bf16(3), to_bf16(0)});
  call.run_forward(stream_);
  EXPECT_EQ(call.floats(kTokensOut, 6), (Floats{1.5f, 2, 15, 18, 0, 0}));
  call.run_backward(stream_);
  const auto dots = call.block(kProbsOut).download<uint16_t>();
  const float want[] = {7, 0, 23, 5, 0, 170};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(from_bf16(dots[i]), want[i]) << i;
}

struct Rejection {
  const char* name;
  Case args;
  aclnnStatus status;
  std::vector<std::string> words;
  bool forward = true, backward = true;
};

const int kNull = ACLNN_ERR_PARAM_NULLPTR;
const int kInvalid = ACLNN_ERR_PARAM_INVALID;

std::vector<Rejection> rejections() {
  const auto null = [](Which which) { return with([=](Case& c) { c.null[which] = true; }); };
  const auto tensor = [](Which which, TensorSpec spec) {
    return with([=](Case& c) { c.tensors[which] = spec; });
  };
  return {
      {"NullRows", null(kRows), kNull, {"permutedTokens", "null"}, true, false},
      {"NullRowsOfProbs", null(kRows), kNull, {"permutedTokensOptional"}, false, true},
      {"NullIndices", null(kIndices), kNull, {"sortedIndices", "null"}},
      {"NullGrad", null(kGrad), kNull, {"unpermutedTokensGrad", "null"}, false, true},
      {"NullOut", null(kTokensOut), kNull, {"out", "null"}, true, false},
      {"NullRowsOut", null(kRowsOut), kNull, {"permutedTokensGradOut"}, false, true},
      {"Padded", with([](Case& c) { c.padded = true; }), kInvalid, {"paddedMode", "true"}},
      {"RestoreShape",
       with([](Case& c) { c.restore_shape = Dims{3, 2}; }),
       kInvalid,
       {"restoreShapeOptional", "null"}},
      {"RestoreShapeEmpty",
       with([](Case& c) { c.restore_shape = Dims{}; }),
       kInvalid,
       {"restoreShapeOptional"}},
      {"TopkDiffers", with([](Case& c) { c.top_k = 3; }), kInvalid, {"3", "2", "probsOptional"}},
      {"Topk513", with([](Case& c) { c.top_k = 513; }), kInvalid, {"513", "512"}},
      {"TopkZero", with([](Case& c) { c.top_k = 0, c.null[kProbs] = true; }), kInvalid, {"0"}},
      {"ProbsOf513",
       plain([](Case& c) {
         c.tensors[kProbs].shape = {1, 513};
         c.tensors[kIndices].shape = {513};
       }),
       kInvalid,
       {"probsOptional", "513", "512"}},
      {"Probs1d",
       plain([](Case& c) { c.tensors[kProbs].shape = {6}; }),
       kInvalid,
       {"probsOptional", "1 dimensions"}},
      {"ProbsDouble",
       tensor(kProbs, {{3, 2}, ACL_DOUBLE}),
       kInvalid,
       {"probsOptional", "ACL_DOUBLE"}},
      {"ProbsOtherTokens", tensor(kProbs, {{2, 2}}), kInvalid, {"probsOptional", "[2, 2]"}},
      {"RowsTooFew", tensor(kRows, {{3, 2}}), kInvalid, {"3 rows", "[1, 5)", "4"}},
      {"RowsEmpty", tensor(kRows, {{0, 2}}), kInvalid, {"empty"}},
      {"RowsFormat",
       tensor(kRows, {.shape = {4, 2}, .format = ACL_FORMAT_NCHW}),
       kInvalid,
       {"ACL_FORMAT_NCHW"}},
      {"IndicesInt64", tensor(kIndices, {{6}, ACL_INT64}), kInvalid, {"sortedIndices"}},
      {"OutOfAnotherShape", tensor(kTokensOut, {{3, 3}}), kInvalid, {"out", "[3, 3]"}, true, false},
      {"RowsOutDiffer",
       tensor(kRowsOut, {{5, 2}}),
       kInvalid,
       {"permutedTokensGradOut", "[5, 2]", "[4, 2]"},
       false,
       true},
      {"ProbsOutOfAnotherType",
       tensor(kProbsOut, {{3, 2}, ACL_FLOAT16}),
       kInvalid,
       {"probsGradOut", "float16"},
       false,
       true},
      {"RangeBackwards", with([](Case& c) { c.range = Dims{5, 1}; }), kInvalid, {"rangeOptional"}},
      {"RangeOfThree",
       with([](Case& c) { c.range = Dims{1, 2, 3}; }),
       kInvalid,
       {"rangeOptional", "3"}},
      {"PastItsBlock", tensor(kRows, {{4, 40}}), kInvalid, {"512"}, true, true},
      {"Overlap", with([](Case& c) { c.output_on_input = true; }), kInvalid, {"overlaps"}},
  };
}

TEST_F(Unpermute, Rejections) {
  for (const Rejection& row : rejections()) {
    SCOPED_TRACE(row.name);
    Case args = row.args;
    if (std::string(row.name) == "PastItsBlock") {
      // Everything agrees with the width, only the memory does not.
      for (const Which which : {kGrad, kTokensOut}) args.tensors[which].shape = {3, 40};
      args.tensors[kRowsOut].shape = {4, 40};
    }
    Call call(args);
    if (row.forward) expect_rejected(call.forward(), row.status, row.words);
    if (row.backward) expect_rejected(call.backward(), row.status, row.words);
    for (const Which which : {kTokensOut, kRowsOut, kProbsOut}) EXPECT_TRUE(call.untouched(which));
  }
}

}  // namespace
}  // namespace moe::acl_test
