// Every rejection of aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize, by code and by message: a
// valid case with one thing broken.
#include <algorithm>
#include <limits>

#include "acl/grad_call.h"

namespace moe::acl_test {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kHuge = int64_t{1} << 62;

struct Rejection {
  const char* name;
  std::function<void(GradCase&)> broken;
  aclnnStatus status;
  std::vector<std::string> words;
};

std::function<void(GradCase&)> null_handle(Which which) {
  return [which](GradCase& c) { c.hand = [which](auto& handles) { handles[which] = nullptr; }; };
}

std::function<void(GradCase&)> garbage_handle(Which which) {
  return [which](GradCase& c) {
    c.hand = [which](auto& handles) {
      handles[which] = reinterpret_cast<const aclTensor*>(uintptr_t{0x7f1234567890});
    };
  };
}

std::function<void(GradCase&)> placed_like(Which which, Which other, size_t bytes) {
  return [=](GradCase& c) {
    c.place = [=](auto& addresses) {
      addresses[which] = static_cast<char*>(addresses[other]) + bytes;
    };
  };
}

std::function<void(GradCase&)> tensor(Which which, TensorSpec spec) {
  return [which, spec](GradCase& c) { c.tensors[which] = spec; };
}

const int kNull = ACLNN_ERR_PARAM_NULLPTR;
const int kInvalid = ACLNN_ERR_PARAM_INVALID;
const char* const kNames[] = {"permutedTokensOutputGrad", "sortedIndices",
                              "permutedProbsOutputGradOptional", "tokenGradOut", "probsGradOut"};

const std::vector<Rejection>& rejections() {
  static const std::vector<Rejection> kAll = {
      {"NullTokens", null_handle(kPermuted), kNull, {kNames[kPermuted], "null"}},
      {"NullIndices", null_handle(kIndices), kNull, {kNames[kIndices], "null"}},
      {"NullTokenOut", null_handle(kTokenOut), kNull, {kNames[kTokenOut], "null"}},
      {"NullProbsOut", null_handle(kProbsOut), kNull, {kNames[kProbsOut], "null"}},

      {"GarbageTokens", garbage_handle(kPermuted), kInvalid, {kNames[kPermuted], "aclTensor"}},
      {"GarbageIndices", garbage_handle(kIndices), kInvalid, {kNames[kIndices], "aclTensor"}},
      {"GarbageProbs", garbage_handle(kProbs), kInvalid, {kNames[kProbs], "aclTensor"}},
      {"GarbageTokenOut", garbage_handle(kTokenOut), kInvalid, {kNames[kTokenOut], "aclTensor"}},
      {"GarbageProbsOut", garbage_handle(kProbsOut), kInvalid, {kNames[kProbsOut], "aclTensor"}},

      {"TokensInt32", tensor(kPermuted, {{4, 2}, ACL_INT32}), kInvalid,
       {kNames[kPermuted], "ACL_INT32", "ACL_FLOAT"}},
      {"TokensDouble", tensor(kPermuted, {{4, 2}, ACL_DOUBLE}), kInvalid,
       {kNames[kPermuted], "ACL_DOUBLE"}},
      {"TokensUnknownType", tensor(kPermuted, {{4, 2}, static_cast<aclDataType>(63)}), kInvalid,
       {kNames[kPermuted], "63"}},
      {"TokensUndefined", tensor(kPermuted, {{4, 2}, ACL_DT_UNDEFINED}), kInvalid,
       {kNames[kPermuted]}},
      {"IndicesInt64", tensor(kIndices, {{6}, ACL_INT64}), kInvalid,
       {kNames[kIndices], "ACL_INT64", "ACL_INT32"}},
      {"IndicesFloat", tensor(kIndices, {{6}, ACL_FLOAT}), kInvalid, {kNames[kIndices]}},
      {"ProbsDouble", tensor(kProbs, {{4}, ACL_DOUBLE}), kInvalid, {kNames[kProbs], "ACL_DOUBLE"}},
      {"ProbsInt8", tensor(kProbs, {{4}, ACL_INT8}), kInvalid, {kNames[kProbs]}},
      {"TokenOutOtherType", tensor(kTokenOut, {{3, 2}, ACL_FLOAT16}), kInvalid,
       {kNames[kTokenOut], "float16", "float32"}},
      {"TokenOutInt32", tensor(kTokenOut, {{3, 2}, ACL_INT32}), kInvalid, {kNames[kTokenOut]}},
      {"ProbsOutOtherType", tensor(kProbsOut, {{3, 2}, ACL_BF16}), kInvalid,
       {kNames[kProbsOut], "bfloat16", "float32"}},

      {"TokensNchw", tensor(kPermuted, {.shape = {4, 2}, .format = ACL_FORMAT_NCHW}), kInvalid,
       {kNames[kPermuted], "ACL_FORMAT_NCHW", "ACL_FORMAT_ND"}},
      {"IndicesNcl", tensor(kIndices, {.shape = {6}, .dtype = ACL_INT32, .format = ACL_FORMAT_NCL}),
       kInvalid, {kNames[kIndices], "ACL_FORMAT_NCL"}},
      {"ProbsNz", tensor(kProbs, {.shape = {4}, .format = ACL_FORMAT_FRACTAL_NZ}), kInvalid,
       {kNames[kProbs], "ACL_FORMAT_FRACTAL_NZ"}},
      {"TokenOutUndefined",
       tensor(kTokenOut, {.shape = {3, 2}, .format = ACL_FORMAT_UNDEFINED}), kInvalid,
       {kNames[kTokenOut], "ACL_FORMAT_UNDEFINED"}},
      {"ProbsOutUnknownFormat",
       tensor(kProbsOut, {.shape = {3, 2}, .format = static_cast<aclFormat>(63)}), kInvalid,
       {kNames[kProbsOut], "63"}},

      {"TokensNoDims", tensor(kPermuted, {{}}), kInvalid, {kNames[kPermuted], "0 dimensions"}},
      {"Tokens1d", tensor(kPermuted, {{8}}), kInvalid, {kNames[kPermuted], "1"}},
      {"Tokens3d", tensor(kPermuted, {{4, 2, 1}}), kInvalid, {kNames[kPermuted], "3"}},
      {"Tokens64d", tensor(kPermuted, {Dims(64, 1)}), kInvalid, {kNames[kPermuted], "64"}},
      {"Indices2d", tensor(kIndices, {{3, 2}, ACL_INT32}), kInvalid, {kNames[kIndices], "2"}},
      {"Probs2d", tensor(kProbs, {{4, 1}}), kInvalid, {kNames[kProbs], "2"}},
      {"ProbsNoDims", tensor(kProbs, {{}}), kInvalid, {kNames[kProbs], "0"}},
      {"TokenOut1d", tensor(kTokenOut, {{6}}), kInvalid, {kNames[kTokenOut], "1"}},
      {"ProbsOut1d", tensor(kProbsOut, {{6}}), kInvalid, {kNames[kProbsOut], "1"}},
      {"ProbsOut3d", tensor(kProbsOut, {{3, 2, 1}}), kInvalid, {kNames[kProbsOut], "3"}},

      {"OtherHidden", tensor(kTokenOut, {{3, 3}}), kInvalid, {kNames[kTokenOut], "3", "2"}},
      {"OtherTokens", tensor(kTokenOut, {{4, 2}}), kInvalid, {kNames[kTokenOut], "4", "3"}},
      {"OtherProbTokens", tensor(kProbsOut, {{2, 2}}), kInvalid, {kNames[kProbsOut]}},
      {"OtherProbTopk", tensor(kProbsOut, {{3, 1}}), kInvalid, {kNames[kProbsOut]}},
      {"SlotsNoMultiple", tensor(kIndices, {{5}, ACL_INT32}), kInvalid,
       {kNames[kIndices], "5", "numTopk"}},
      {"TokenRowsTooFew", tensor(kPermuted, {{3, 2}}), kInvalid,
       {kNames[kPermuted], "3 rows", "[1, 5)", "4"}},
      {"ProbRowsTooFew", tensor(kProbs, {{3}}), kInvalid, {kNames[kProbs], "3", "[1, 5)", "4"}},

      {"EmptyTokenRows", tensor(kPermuted, {{0, 2}}), kInvalid, {kNames[kPermuted], "empty"}},
      {"EmptyHidden", tensor(kPermuted, {{4, 0}}), kInvalid, {kNames[kPermuted], "empty"}},
      {"EmptyIndices", tensor(kIndices, {{0}, ACL_INT32}), kInvalid, {kNames[kIndices], "empty"}},
      {"EmptyTokenOut", tensor(kTokenOut, {{0, 2}}), kInvalid, {kNames[kTokenOut], "empty"}},
      {"EmptyProbsOut", tensor(kProbsOut, {{3, 0}}), kInvalid, {kNames[kProbsOut], "empty"}},

      {"TopkZero", [](GradCase& c) { c.top_k = 0; }, kInvalid, {"numTopk", "0"}},
      {"TopkNegative", [](GradCase& c) { c.top_k = -2; }, kInvalid, {"numTopk", "-2"}},
      {"TopkMin", [](GradCase& c) { c.top_k = kMin; }, kInvalid, {"numTopk"}},
      {"TopkMax", [](GradCase& c) { c.top_k = kMax; }, kInvalid, {"numTopk", "512"}},
      {"Topk513",
       [](GradCase& c) {
         c.top_k = 513;
         c.tensors[kIndices].shape = {513};
       },
       kInvalid, {"numTopk", "513", "512"}},
      {"Padded", [](GradCase& c) { c.padded = true; }, kInvalid, {"paddedMode", "true", "false"}},

      {"RangeOfOne", [](GradCase& c) { c.range = Dims{1}; }, kInvalid, {"rangeOptional", "1", "2"}},
      {"RangeOfThree", [](GradCase& c) { c.range = Dims{1, 5, 6}; }, kInvalid,
       {"rangeOptional", "3", "2"}},
      {"RangeNegative", [](GradCase& c) { c.range = Dims{-1, 3}; }, kInvalid,
       {"rangeOptional", "-1"}},
      {"RangeBackwards", [](GradCase& c) { c.range = Dims{5, 1}; }, kInvalid,
       {"rangeOptional", "5", "1"}},
      {"RangePastSlots", [](GradCase& c) { c.range = Dims{3, 7}; }, kInvalid,
       {"rangeOptional", "7", "6"}},
      {"RangeHuge", [](GradCase& c) { c.range = Dims{kMin, kMax}; }, kInvalid, {"rangeOptional"}},

      {"TokenOutGaps",
       tensor(kTokenOut, {.shape = {3, 2}, .strides = Dims{4, 1}}), kInvalid,
       {kNames[kTokenOut], "contiguous"}},
      {"TokenOutTransposed",
       tensor(kTokenOut, {.shape = {3, 2}, .strides = Dims{1, 3}}), kInvalid,
       {kNames[kTokenOut], "contiguous"}},
      {"ProbsOutGaps",
       tensor(kProbsOut, {.shape = {3, 2}, .strides = Dims{3, 1}}), kInvalid,
       {kNames[kProbsOut], "contiguous"}},
      {"TokensNegativeStride",
       tensor(kPermuted, {.shape = {4, 2}, .strides = Dims{-2, 1}, .offset = 6}), kInvalid,
       {kNames[kPermuted], "-2"}},
      {"TokensMinStride", tensor(kPermuted, {.shape = {4, 2}, .strides = Dims{kMin, 1}}), kInvalid,
       {kNames[kPermuted]}},
      {"IndicesNegativeStride",
       tensor(kIndices, {.shape = {6}, .dtype = ACL_INT32, .strides = Dims{-1}, .offset = 5}),
       kInvalid, {kNames[kIndices], "-1"}},
      {"TokensNegativeOffset", tensor(kPermuted, {.shape = {4, 2}, .offset = -1}), kInvalid,
       {kNames[kPermuted], "-1"}},
      {"ProbsMinOffset", tensor(kProbs, {.shape = {4}, .offset = kMin}), kInvalid, {kNames[kProbs]}},
      {"TokenOutNegativeOffset", tensor(kTokenOut, {.shape = {3, 2}, .offset = -8}), kInvalid,
       {kNames[kTokenOut], "-8"}},
      {"NegativeDim", tensor(kPermuted, {{-4, 2}}), kInvalid, {kNames[kPermuted], "-4"}},
      {"NegativeDims", tensor(kPermuted, {{-4, -2}}), kInvalid, {kNames[kPermuted]}},
      {"MinDim", tensor(kIndices, {{kMin}, ACL_INT32}), kInvalid, {kNames[kIndices]}},

      {"HugeRows", tensor(kPermuted, {{kMax, 2}}), kInvalid, {kNames[kPermuted]}},
      {"HugeHidden", tensor(kPermuted, {{4, kMax}}), kInvalid, {kNames[kPermuted]}},
      {"HugeBoth", tensor(kPermuted, {{kHuge, kHuge}}), kInvalid, {kNames[kPermuted]}},
      {"HugeStride",
       tensor(kPermuted, {.shape = {4, 2}, .strides = Dims{kMax, kMax}}), kInvalid,
       {kNames[kPermuted]}},
      {"HugeOffset", tensor(kPermuted, {.shape = {4, 2}, .offset = kMax}), kInvalid,
       {kNames[kPermuted]}},
      {"HugeOffsetInBytesWraps", tensor(kPermuted, {.shape = {4, 2}, .offset = kHuge}), kInvalid,
       {kNames[kPermuted]}},
      {"HugeIndices", tensor(kIndices, {{kMax - 1}, ACL_INT32}), kInvalid, {kNames[kIndices]}},
      {"HugeTokenOut", tensor(kTokenOut, {{kMax, kMax}}), kInvalid, {kNames[kTokenOut]}},

      {"TokensPastBlock",
       [](GradCase& c) {
         c.tensors[kPermuted].shape = {65, 2};  // 520 bytes
       },
       kInvalid, {kNames[kPermuted], "520", "512"}},
      {"TokensPastBlockByOffset", tensor(kPermuted, {.shape = {4, 2}, .offset = 121}), kInvalid,
       {kNames[kPermuted], "512"}},
      {"TokensPastBlockByStride",
       tensor(kPermuted, {.shape = {4, 2}, .strides = Dims{43, 1}}), kInvalid,
       {kNames[kPermuted], "524", "512"}},
      {"OffsetBehindBlock", tensor(kPermuted, {.shape = {4, 2}, .offset = 1 << 20}), kInvalid,
       {kNames[kPermuted]}},
      {"IndicesPastBlock", [](GradCase& c) { c.block_bytes[kIndices] = 20; }, kInvalid,
       {kNames[kIndices], "24", "20"}},
      {"ProbsPastBlock", [](GradCase& c) { c.block_bytes[kProbs] = 15; }, kInvalid,
       {kNames[kProbs], "16", "15"}},
      {"TokenOutPastBlock", [](GradCase& c) { c.block_bytes[kTokenOut] = 23; }, kInvalid,
       {kNames[kTokenOut], "24", "23"}},
      {"ProbsOutPastBlock", [](GradCase& c) { c.block_bytes[kProbsOut] = 23; }, kInvalid,
       {kNames[kProbsOut], "24", "23"}},

      {"OutputsOverlap", placed_like(kProbsOut, kTokenOut, 20), kInvalid,
       {kNames[kProbsOut], kNames[kTokenOut], "overlap"}},
      {"TokenOutOnTokens", placed_like(kTokenOut, kPermuted, 28), kInvalid,
       {kNames[kTokenOut], kNames[kPermuted], "overlap"}},
      {"TokenOutOnIndices", placed_like(kTokenOut, kIndices, 0), kInvalid,
       {kNames[kTokenOut], kNames[kIndices], "overlap"}},
      {"TokenOutOnProbs", placed_like(kTokenOut, kProbs, 0), kInvalid,
       {kNames[kTokenOut], kNames[kProbs], "overlap"}},
      {"ProbsOutOnTokens", placed_like(kProbsOut, kPermuted, 0), kInvalid,
       {kNames[kProbsOut], kNames[kPermuted], "overlap"}},
      {"ProbsOutOnIndices", placed_like(kProbsOut, kIndices, 4), kInvalid,
       {kNames[kProbsOut], kNames[kIndices], "overlap"}},
      {"ProbsOutOnProbs", placed_like(kProbsOut, kProbs, 12), kInvalid,
       {kNames[kProbsOut], kNames[kProbs], "overlap"}},
  };
  return kAll;
}

class Rejects : public Device, public testing::WithParamInterface<size_t> {};

TEST_P(Rejects, ByCodeAndMessage) {
  const Rejection& rejection = rejections()[GetParam()];
  GradCase args;
  rejection.broken(args);
  GradCall call(args);
  expect_rejected(call.phase_one(), rejection.status, rejection.words);
  EXPECT_TRUE(call.untouched_from(kTokenOut));
  EXPECT_TRUE(call.untouched_from(kProbsOut));
}

INSTANTIATE_TEST_SUITE_P(PermuteWithEpGrad, Rejects, testing::Range(size_t{0}, rejections().size()),
                         [](const auto& param) { return rejections()[param.param].name; });

using PermuteWithEpGradRejects = Device;

TEST_F(PermuteWithEpGradRejects, TheCaseThatIsBrokenAboveIsValid) {
  GradCall call;
  EXPECT_EQ(call.run(stream_), 0) << recent_message();
  EXPECT_EQ(call.floats(kTokenOut, 6), kExampleTokens);
  EXPECT_EQ(call.floats(kProbsOut, 6), kExampleProbs);
}

// The block is the one that the address lies in, not whichever the view happens to reach.
TEST_F(PermuteWithEpGradRejects, OffsetIntoAnotherBlock) {
  Block one(512), other(512);
  char* low = std::min(static_cast<char*>(one.data()), static_cast<char*>(other.data()));
  char* high = std::max(static_cast<char*>(one.data()), static_cast<char*>(other.data()));
  GradCase args;
  args.tensors[kTokenOut].offset = (high - low) / int64_t{sizeof(float)};
  args.place = [low](auto& addresses) { addresses[kTokenOut] = low; };
  GradCall call(args);
  expect_rejected(call.phase_one(), ACLNN_ERR_PARAM_INVALID, {kNames[kTokenOut], "512"});
}

TEST_F(PermuteWithEpGradRejects, NullOutParameters) {
  GradCall call;
  uint64_t size = PhaseOne::kUntouched;
  aclOpExecutor* executor = PhaseOne::untouched();
  const auto phase_one = [&](uint64_t* size_out, aclOpExecutor** executor_out) {
    return aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
        call.tensor(kPermuted).get(), call.tensor(kIndices).get(), call.tensor(kProbs).get(), 2,
        call.range(), false, call.tensor(kTokenOut).get(), call.tensor(kProbsOut).get(), size_out,
        executor_out);
  };
  EXPECT_EQ(phase_one(nullptr, &executor), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_NE(recent_message().find("workspaceSize"), std::string::npos);
  EXPECT_EQ(executor, PhaseOne::untouched());
  EXPECT_EQ(phase_one(&size, nullptr), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_NE(recent_message().find("executor"), std::string::npos);
  EXPECT_EQ(size, PhaseOne::kUntouched);
  EXPECT_EQ(phase_one(nullptr, nullptr), ACLNN_ERR_PARAM_NULLPTR);
}

TEST_F(PermuteWithEpGradRejects, DestroyedTensors) {
  for (int which = 0; which < kNumTensors; ++which) {
    SCOPED_TRACE(kNames[which]);
    const aclTensor* destroyed = nullptr;
    GradCase args;
    args.hand = [&](auto& handles) { handles[which] = destroyed; };
    GradCall call(args);
    destroyed = call.tensor(static_cast<Which>(which)).get();
    call.tensor(static_cast<Which>(which)).reset();
    expect_rejected(call.phase_one(), ACLNN_ERR_PARAM_INVALID, {kNames[which], "destroyed"});
  }
}

TEST_F(PermuteWithEpGradRejects, AHandleOfAnotherKind) {
  GradCall call;
  GradCase args;
  args.hand = [&](auto& handles) {
    handles[kPermuted] = reinterpret_cast<const aclTensor*>(call.range());
  };
  expect_rejected(GradCall(args).phase_one(), ACLNN_ERR_PARAM_INVALID,
                  {kNames[kPermuted], "aclTensor"});
}

TEST_F(PermuteWithEpGradRejects, BadRangeHandles) {
  GradCall call;
  aclIntArray* destroyed = aclCreateIntArray(nullptr, 0);
  ASSERT_EQ(aclDestroyIntArray(destroyed), ACLNN_SUCCESS);
  for (const aclIntArray* range :
       {const_cast<const aclIntArray*>(destroyed), reinterpret_cast<const aclIntArray*>(0x1234567),
        reinterpret_cast<const aclIntArray*>(call.tensor(kProbs).get())}) {
    PhaseOne got;
    got.status = aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
        call.tensor(kPermuted).get(), call.tensor(kIndices).get(), call.tensor(kProbs).get(), 2,
        range, false, call.tensor(kTokenOut).get(), call.tensor(kProbsOut).get(),
        &got.workspace_size, &got.executor);
    got.message = recent_message();
    expect_rejected(got, ACLNN_ERR_PARAM_INVALID, {"rangeOptional", "aclIntArray"});
  }
}

TEST_F(PermuteWithEpGradRejects, DataOutsideEveryBlock) {
  std::vector<float> host(256);
  void* pinned = nullptr;
  ASSERT_EQ(aclrtMallocHost(&pinned, 512), ACL_SUCCESS);
  for (void* data : {static_cast<void*>(host.data()), pinned}) {
    for (int which = 0; which < kNumTensors; ++which) {
      SCOPED_TRACE(kNames[which]);
      GradCase args;
      args.place = [&](auto& addresses) { addresses[which] = data; };
      expect_rejected(GradCall(args).phase_one(), ACLNN_ERR_PARAM_INVALID,
                      {kNames[which], "aclrtMalloc"});
    }
  }
  EXPECT_EQ(aclrtFreeHost(pinned), ACL_SUCCESS);
}

// Numbers that no enumerator has, far beyond what the types can hold.
TEST_F(PermuteWithEpGradRejects, DtypesAndFormatsOfAnyNumber) {
  for (int which = 0; which < kNumTensors; ++which) {
    for (const bool format : {false, true}) {
      SCOPED_TRACE(testing::Message() << kNames[which] << (format ? " format" : " dtype"));
      GradCall call;
      const Dims shape = GradCase().tensors[which].shape;
      ASSERT_EQ(aclInitTensor(call.tensor(static_cast<Which>(which)).get(), shape.data(),
                              shape.size(), static_cast<aclDataType>(format ? 0 : 1000), nullptr, 0,
                              static_cast<aclFormat>(format ? -1000 : ACL_FORMAT_ND), shape.data(),
                              shape.size(), call.block(static_cast<Which>(which)).data()),
                ACLNN_SUCCESS);
      expect_rejected(call.phase_one(), ACLNN_ERR_PARAM_INVALID,
                      {kNames[which], format ? "format -1000" : "dtype 1000"});
    }
  }
}

TEST_F(PermuteWithEpGradRejects, FreedBlocks) {
  for (int which = 0; which < kNumTensors; ++which) {
    SCOPED_TRACE(kNames[which]);
    GradCall call;
    Block block(512);
    GradCase args;
    args.place = [&](auto& addresses) { addresses[which] = block.data(); };
    GradCall freed(args);
    block.free();
    expect_rejected(freed.phase_one(), ACLNN_ERR_PARAM_INVALID, {kNames[which]});
  }
}

}  // namespace
}  // namespace moe::acl_test
