// Random combinations of arguments, most of them wrong: whatever comes, no crash, a documented
// code, and no byte written but those of the outputs of a call that succeeded.
#include <limits>
#include <random>

#include "acl/grad_call.h"

namespace moe::acl_test {
namespace {

class Fuzzer {
 public:
  explicit Fuzzer(uint32_t seed) : random_(seed) {}

  GradCase next() {
    GradCase args;
    for (int faults = pick({0, 1, 1, 2, 3}); faults > 0; --faults) break_something(args);
    return args;
  }

 private:
  template <class T>
  T pick(std::initializer_list<T> values) {
    const auto last = static_cast<int>(values.size()) - 1;
    return values.begin()[std::uniform_int_distribution<int>(0, last)(random_)];
  }
  // Everyday numbers, and those around every edge.
  int64_t number() {
    constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
    return pick<int64_t>({0,
                          1,
                          2,
                          3,
                          4,
                          5,
                          6,
                          8,
                          64,
                          128,
                          511,
                          512,
                          513,
                          -1,
                          -2,
                          -64,
                          kMax,
                          kMax - 1,
                          -kMax,
                          -kMax - 1,
                          kMax / 2,
                          kMax / 4 + 1,
                          kMax / 8,
                          int64_t{1} << 31,
                          int64_t{1} << 32,
                          (int64_t{1} << 62) - 1});
  }
  Dims numbers() {
    Dims result(pick<size_t>({0, 1, 1, 2, 2, 2, 3, 8, 9, 64}));
    for (int64_t& value : result) value = number();
    return result;
  }
  // One that the layer must tell from every handle; never an address that is in use.
  const aclTensor* garbage() {
    return reinterpret_cast<const aclTensor*>(
        pick<uintptr_t>({1, 8, 0xdeadbeef, ~uintptr_t{0}, uintptr_t{1} << 63, 0xA4FFFFFFFFFFFFFF,
                         0xA400000000000000, random_()}));
  }

  void break_something(GradCase& args) {
    const int which = pick({0, 1, 2, 3, 4});
    TensorSpec& tensor = args.tensors[which];
    switch (pick({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})) {
      case 0:
        tensor.shape = numbers();
        break;
      case 1:
        if (!tensor.shape.empty()) tensor.shape[random_() % tensor.shape.size()] = number();
        break;
      case 2:
        tensor.strides = Dims(tensor.shape.size());
        for (int64_t& stride : *tensor.strides) stride = number();
        break;
      case 3:
        tensor.offset = number();
        break;
      case 4:
        tensor.dtype = pick({ACL_FLOAT16, ACL_BF16, ACL_INT32, ACL_INT64, ACL_DOUBLE, ACL_STRING,
                             ACL_DT_UNDEFINED, ACL_COMPLEX128});
        break;
      case 5:
        tensor.format = pick({ACL_FORMAT_UNDEFINED, ACL_FORMAT_NCHW, ACL_FORMAT_FRACTAL_NZ});
        break;
      case 6:
        tensor.storage = numbers();
        break;
      case 7:
        args.top_k = number();
        break;
      case 8:
        args.range = pick({0, 1}) == 0 ? numbers() : Dims{number(), number()};
        break;
      case 9:
        args.hand = [which, bad = pick({0, 1}) == 0 ? nullptr : garbage()](auto& handles) {
          handles[which] = bad;
        };
        break;
      case 10:
        args.place = [which, other = pick({0, 1, 2, 3, 4}), by = random_() % 64](auto& addresses) {
          addresses[which] = static_cast<char*>(addresses[other]) + by;
        };
        break;
      default:
        args.block_bytes[which] = random_() % 64;
    }
    // Strides belong to the shape that is passed.
    for (TensorSpec& each : args.tensors) {
      if (each.strides) each.strides->resize(each.shape.size(), 1);
    }
  }

  std::mt19937 random_;
};

using Bytes = std::vector<uint8_t>;

std::array<Bytes, kNumTensors> contents(GradCall& call) {
  std::array<Bytes, kNumTensors> result;
  for (int i = 0; i < kNumTensors; ++i) {
    result[i] = call.block(static_cast<Which>(i)).download<uint8_t>();
  }
  return result;
}

using Hostile = Device;

TEST_F(Hostile, RandomArguments) {
  int accepted = 0, rejected = 0;
  for (uint32_t seed = 1; seed <= 4000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const GradCase args = Fuzzer(seed).next();
    GradCall call(args);
    const auto before = contents(call);
    const PhaseOne first = call.phase_one();
    if (first.status != ACLNN_SUCCESS) {
      ++rejected;
      EXPECT_TRUE(first.status == ACLNN_ERR_PARAM_NULLPTR ||
                  first.status == ACLNN_ERR_PARAM_INVALID)
          << first.status;
      EXPECT_NE(first.message.find(": "), std::string::npos) << first.message;
      EXPECT_TRUE(first.wrote_nothing());
      EXPECT_EQ(contents(call), before);
    } else {
      ++accepted;
      Block workspace(first.workspace_size);
      const auto after_phase_one = contents(call);
      EXPECT_EQ(after_phase_one, before);
      ASSERT_EQ(aclnnMoeTokenPermuteWithEpGrad(workspace.data(), first.workspace_size,
                                               first.executor, stream_),
                ACLNN_SUCCESS);
      ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
      // A case with a place of its own may have outputs in other blocks, where they belong.
      if (!args.place) {
        const auto after = contents(call);
        EXPECT_EQ(after[kPermuted], before[kPermuted]);
        EXPECT_EQ(after[kIndices], before[kIndices]);
        EXPECT_EQ(after[kProbs], before[kProbs]);
        for (int out : {kTokenOut, kProbsOut}) {
          const TensorSpec& spec = args.tensors[out];
          const size_t element = aclDataTypeSize(spec.dtype);
          size_t num_bytes = element;
          for (int64_t size : spec.shape) num_bytes *= static_cast<size_t>(size);
          const size_t begin = static_cast<size_t>(spec.offset) * element;
          for (size_t i = 0; i < after[out].size(); ++i) {
            if (i >= begin && i < begin + num_bytes) continue;
            EXPECT_EQ(after[out][i], before[out][i]) << "byte " << i << " of output " << out;
          }
        }
      }
    }
    if (HasFailure()) return;
  }
  // Both kinds must occur in numbers, or the test tells nothing.
  EXPECT_GT(accepted, 400);
  EXPECT_GT(rejected, 400);
}

// Phase 2 with anything for an executor, a workspace and a stream.
TEST_F(Hostile, RandomPhaseTwo) {
  std::mt19937 random(7);
  GradCall call;
  std::vector<aclOpExecutor*> executors = {nullptr};
  // One live stream only: two would write the same outputs at once.
  std::vector<aclrtStream> streams = {stream_, &call, call.range()};
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE(testing::Message() << "seed 7, step " << i);
    if (i % 3 == 0) executors.push_back(call.phase_one().executor);
    aclOpExecutor* executor = executors[random() % executors.size()];
    if (random() % 4 == 0) {
      // A handle with any of its bits wrong.
      executor = reinterpret_cast<aclOpExecutor*>(reinterpret_cast<uintptr_t>(executor) ^
                                                  (uintptr_t{1} << (random() % 64)));
    }
    void* workspace = random() % 2 == 0 ? nullptr : &random;
    const int status = aclnnMoeTokenPermuteWithEpGrad(workspace, random(), executor,
                                                      streams[random() % streams.size()]);
    EXPECT_TRUE(status == ACLNN_SUCCESS || status == ACLNN_ERR_PARAM_NULLPTR ||
                status == ACLNN_ERR_PARAM_INVALID || status == ACLNN_ERR_INNER_NULLPTR)
        << status;
  }
  ASSERT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  EXPECT_EQ(call.floats(kTokenOut, 6), kExampleTokens);
  for (aclOpExecutor* executor : executors) aclDestroyAclOpExecutor(executor);
}

}  // namespace
}  // namespace moe::acl_test
