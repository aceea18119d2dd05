// aclnnMoeTokenPermuteWithEp and aclnnMoeTokenPermute: results, every line of the edge rules, and
// each rejection by code and message.
#include <array>
#include <functional>

#include "acl/tensors.h"
#include "aclnnop/aclnn_moe_token_permute.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep.h"

namespace moe::acl_test {
namespace {

enum Which { kTokens, kIndices, kProbs, kTokensOut, kSortedOut, kProbsOut, kNumTensors };

// Tokens (1,2) (3,4) (5,6), experts 1 0, 1 2, 0 1: rows in the order of the tokens 0 2 0 1 2 1, and
// the window [1, 5) of them.
struct PermuteCase {
  std::array<TensorSpec, kNumTensors> tensors{{{.shape = {3, 2}},
                                               {.shape = {3, 2}, .dtype = ACL_INT32},
                                               {.shape = {3, 2}},
                                               {.shape = {4, 2}},
                                               {.shape = {6}, .dtype = ACL_INT32},
                                               {.shape = {4}}}};
  std::optional<Dims> range = Dims{1, 5};
  int64_t num_out_tokens = 0;
  bool padded = false;
  bool plain = false;  // aclnnMoeTokenPermute
  // The last word on handles and addresses.
  std::function<void(std::array<const aclTensor*, kNumTensors>&)> hand = nullptr;
  std::function<void(std::array<void*, kNumTensors>&)> place = nullptr;
};

PermuteCase plain(int64_t num_out_tokens, int64_t rows) {
  PermuteCase c;
  c.plain = true;
  c.num_out_tokens = num_out_tokens;
  c.tensors[kTokensOut].shape = {rows, 2};
  return c;
}

class PermuteCall {
 public:
  explicit PermuteCall(const PermuteCase& args = {}) : args_(args) {
    std::array<void*, kNumTensors> addresses;
    for (int i = 0; i < kNumTensors; ++i) {
      blocks_.emplace_back(256);
      blocks_[i].fill(0xa5);
      addresses[i] = blocks_[i].data();
    }
    blocks_[kTokens].upload<float>({1, 2, 3, 4, 5, 6});
    if (args.tensors[kIndices].dtype == ACL_INT64) {
      blocks_[kIndices].upload<int64_t>({1, 0, 1, 2, 0, 1});
    } else {
      blocks_[kIndices].upload<int32_t>({1, 0, 1, 2, 0, 1});
    }
    blocks_[kProbs].upload<float>({.1f, .2f, .3f, .4f, .5f, .6f});
    if (args.place) args.place(addresses);
    for (int i = 0; i < kNumTensors; ++i) handles_[i] = {args.tensors[i], addresses[i]};
    if (args.range) range_ = aclCreateIntArray(args.range->data(), args.range->size());
  }
  ~PermuteCall() { EXPECT_EQ(aclDestroyIntArray(range_), ACLNN_SUCCESS); }
  PermuteCall(const PermuteCall&) = delete;
  PermuteCall& operator=(const PermuteCall&) = delete;

  PhaseOne phase_one() {
    std::array<const aclTensor*, kNumTensors> h;
    for (int i = 0; i < kNumTensors; ++i) h[i] = handles_[i].get();
    if (args_.hand) args_.hand(h);
    PhaseOne result;
    if (args_.plain) {
      result.status = aclnnMoeTokenPermuteGetWorkspaceSize(
          h[kTokens], h[kIndices], args_.num_out_tokens, args_.padded, h[kTokensOut], h[kSortedOut],
          &result.workspace_size, &result.executor);
    } else {
      result.status = aclnnMoeTokenPermuteWithEpGetWorkspaceSize(
          h[kTokens], h[kIndices], h[kProbs], range_, args_.num_out_tokens, args_.padded,
          h[kTokensOut], h[kSortedOut], h[kProbsOut], &result.workspace_size, &result.executor);
    }
    result.message = recent_message();
    return result;
  }

  void run(aclrtStream stream) {
    const PhaseOne first = phase_one();
    ASSERT_EQ(first.status, ACLNN_SUCCESS) << first.message;
    const Block workspace(first.workspace_size);
    const auto second = args_.plain ? aclnnMoeTokenPermute : aclnnMoeTokenPermuteWithEp;
    ASSERT_EQ(second(workspace.data(), first.workspace_size, first.executor, stream),
              ACLNN_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  }

  Block& block(Which which) { return blocks_[which]; }
  template <class T>
  std::vector<T> values(Which which, size_t count) const {
    auto values = blocks_[which].download<T>();
    values.resize(count);
    return values;
  }
  bool untouched(Which which) const {
    return blocks_[which].download<uint8_t>() == std::vector<uint8_t>(256, 0xa5);
  }

 private:
  PermuteCase args_;
  std::vector<Block> blocks_;
  std::array<TensorHandle, kNumTensors> handles_;
  aclIntArray* range_ = nullptr;
};

const std::vector<float> kAllRows = {1, 2, 5, 6, 1, 2, 3, 4, 5, 6, 3, 4};
const std::vector<int32_t> kSorted = {2, 0, 3, 5, 1, 4};

std::vector<float> rows(size_t first, size_t last) {
  return {kAllRows.begin() + static_cast<std::ptrdiff_t>(2 * first),
          kAllRows.begin() + static_cast<std::ptrdiff_t>(2 * last)};
}

using AclPermute = Device;

TEST_F(AclPermute, GivesTheWindow) {
  PermuteCall call;
  call.run(stream_);
  EXPECT_EQ(call.values<float>(kTokensOut, 8), rows(1, 5));
  EXPECT_EQ(call.values<int32_t>(kSortedOut, 6), kSorted);
  EXPECT_EQ(call.values<float>(kProbsOut, 4), (std::vector<float>{.5f, .1f, .3f, .6f}));
}

TEST_F(AclPermute, TakesInt64AndFlatIndices) {
  PermuteCase c;
  c.tensors[kIndices] = {.shape = {3, 2}, .dtype = ACL_INT64};
  c.num_out_tokens = 77;  // with a range it does not count
  PermuteCall call(c);
  call.run(stream_);
  EXPECT_EQ(call.values<float>(kTokensOut, 8), rows(1, 5));

  PermuteCase flat = plain(0, 3);
  flat.tensors[kIndices] = {.shape = {3}, .dtype = ACL_INT32};
  flat.tensors[kSortedOut].shape = {3};
  PermuteCall one(flat);  // experts 1 0 1
  one.run(stream_);
  EXPECT_EQ(one.values<float>(kTokensOut, 6), (std::vector<float>{3, 4, 1, 2, 5, 6}));
}

TEST_F(AclPermute, NegativeIdsComeLast) {
  PermuteCall call(plain(0, 6));
  call.block(kIndices).upload<int32_t>({-1, 0, 1, 2, 0, 1});
  call.run(stream_);
  EXPECT_EQ(call.values<int32_t>(kSortedOut, 6), (std::vector<int32_t>{5, 0, 2, 4, 1, 3}));
}

TEST_F(AclPermute, NumOutTokensKeepsTheFirstRows) {
  for (const auto& [given, kept] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 6}, {4, 4}, {6, 6}, {100, 6}, {-1, 5}, {-5, 1}, {INT64_MAX, 6}}) {
    for (const bool with_ep : {false, true}) {
      PermuteCase c = plain(given, kept);
      c.plain = !with_ep;
      c.range.reset();
      PermuteCall call(c);
      call.run(stream_);
      EXPECT_EQ(call.values<float>(kTokensOut, static_cast<size_t>(2 * kept)),
                rows(0, static_cast<size_t>(kept)));
      EXPECT_EQ(call.values<int32_t>(kSortedOut, 6), kSorted);
      EXPECT_TRUE(call.untouched(kProbsOut));
    }
  }
}

// Without a range, or without probs, whatever stands for the output of the probs is not looked at.
TEST_F(AclPermute, IgnoresProbsThatDoNotCount) {
  const auto foreign = reinterpret_cast<const aclTensor*>(uintptr_t{0x1234});
  for (const Dims& range : {Dims{}, Dims{0, 6}}) {
    PermuteCase c;
    c.range = range;
    c.tensors[kTokensOut].shape = {6, 2};
    if (!range.empty()) c.tensors[kProbs].shape = {0};
    c.hand = [&](auto& h) {
      h[kProbsOut] = foreign;
      if (range.empty()) h[kProbs] = foreign;
    };
    PermuteCall call(c);
    call.run(stream_);
    EXPECT_EQ(call.values<float>(kTokensOut, 12), kAllRows);
  }
}

struct Rejection {
  const char* name;
  std::function<void(PermuteCase&)> broken;
  int status;
  std::vector<std::string> words;
};

template <Which which>
void null_handle(PermuteCase& c) {
  c.hand = [](auto& h) { h[which] = nullptr; };
}

const std::vector<Rejection>& rejections() {
  const int null = ACLNN_ERR_PARAM_NULLPTR, invalid = ACLNN_ERR_PARAM_INVALID;
  static const std::vector<Rejection> kAll = {
      {"NullTokens", null_handle<kTokens>, null, {"tokens", "null"}},
      {"NullIndices", null_handle<kIndices>, null, {"indices", "null"}},
      {"NullTokensOut", null_handle<kTokensOut>, null, {"permuteTokensOut", "null"}},
      {"NullSortedOut", null_handle<kSortedOut>, null, {"sortedIndicesOut", "null"}},
      {"NullProbsOut", null_handle<kProbsOut>, null, {"permuteProbsOut", "null"}},
      {"Padded", [](auto& c) { c.padded = true; }, invalid, {"paddedMode"}},
      {"EmptyTokens",
       [](auto& c) { c.tensors[kTokens].shape = {3, 0}; },
       invalid,
       {"tokens", "[3, 0]", "empty"}},
      {"EmptyWindow",
       [](auto& c) { c.range = Dims{2, 2}, c.tensors[kTokensOut].shape = {0, 2}; },
       invalid,
       {"permuteTokensOut", "empty"}},
      {"DoubleTokens",
       [](auto& c) { c.tensors[kTokens].dtype = c.tensors[kTokensOut].dtype = ACL_DOUBLE; },
       invalid,
       {"tokens", "DOUBLE"}},
      {"FloatIndices",
       [](auto& c) { c.tensors[kIndices].dtype = ACL_FLOAT; },
       invalid,
       {"indices", "ACL_INT32", "ACL_INT64"}},
      {"WideSortedOut",
       [](auto& c) { c.tensors[kSortedOut].dtype = ACL_INT64; },
       invalid,
       {"sortedIndicesOut", "ACL_INT32"}},
      {"Format",
       [](auto& c) { c.tensors[kTokens].format = ACL_FORMAT_NCHW; },
       invalid,
       {"tokens", "ACL_FORMAT_ND"}},
      {"TooManyExperts",
       [](auto& c) {
         c.tensors[kIndices].shape = {3, 513};
         c.tensors[kIndices].strides = Dims{0, 0};
       },
       invalid,
       {"indices", "513", "512"}},
      {"RangeOfThree",
       [](auto& c) { c.range = Dims{0, 1, 2}; },
       invalid,
       {"rangeOptional", "3 values"}},
      {"RangeTooLong",
       [](auto& c) { c.range = Dims{0, 7}; },
       invalid,
       {"rangeOptional", "[0, 7)", "6"}},
      {"OneRowTooFew",
       [](auto& c) { c.tensors[kTokensOut].shape = {3, 2}; },
       invalid,
       {"permuteTokensOut", "3 rows", "[1, 5)", "4"}},
      {"OneRowTooMany",
       [](auto& c) { c.tensors[kTokensOut].shape = {5, 2}; },
       invalid,
       {"permuteTokensOut", "5 rows", "exactly 4"}},
      {"OneProbTooMany",
       [](auto& c) { c.tensors[kProbsOut].shape = {5}; },
       invalid,
       {"permuteProbsOut", "5 rows", "exactly 4"}},
      {"NotAsManyAsKept",
       [](auto& c) { c = plain(-2, 5); },
       invalid,
       {"permuteTokensOut", "5 rows", "numOutTokens -2 keeps 4 of 6"}},
      {"NoneKept",
       [](auto& c) { c = plain(INT64_MIN, 1); },
       invalid,
       {"permuteTokensOut", "keeps 0 of 6"}},
      {"ProbsShape",
       [](auto& c) { c.tensors[kProbs].shape = {2, 3}; },
       invalid,
       {"probsOptional", "[2, 3]", "[3, 2]"}},
      {"SortedShape",
       [](auto& c) { c.tensors[kSortedOut].shape = {5}; },
       invalid,
       {"sortedIndicesOut", "[5]", "[6]"}},
      {"Overlap",
       [](auto& c) { c.place = [](auto& at) { at[kTokensOut] = at[kTokens]; }; },
       invalid,
       {"permuteTokensOut", "overlaps tokens"}},
      {"PastTheBlock",
       [](auto& c) { c.tensors[kTokens] = {.shape = {3, 2}, .offset = 60}; },
       invalid,
       {"tokens", "256"}},
  };
  return kAll;
}

TEST_F(AclPermute, Rejects) {
  for (const Rejection& rejection : rejections()) {
    SCOPED_TRACE(rejection.name);
    PermuteCase c;
    rejection.broken(c);
    expect_rejected(PermuteCall(c).phase_one(), rejection.status, rejection.words);
  }
}

}  // namespace
}  // namespace moe::acl_test
