// Addresses: missing ones, and outputs that share bytes with another tensor.
#include <gtest/gtest.h>

#include <array>

#include "ops/rejection.h"

namespace test {
namespace {

using moe::DType;
using moe::PermuteWithEpGrad;
using moe::TensorDesc;
using Args = PermuteWithEpGrad::Args;
using Pointers = PermuteWithEpGrad::Pointers;

constexpr const char* kNames[] = {"permuted_tokens_grad", "sorted_indices", "permuted_probs_grad",
                                  "tokens_grad", "probs_grad"};
constexpr int kNumInputs = 3, kNumTensors = 5;
// Bytes of the sample's tensors, in that order.
constexpr int64_t kBytes[] = {32, 24, 16, 24, 24};

// The tensors' addresses by number, each far away from the others until a test moves it.
class Addresses {
 public:
  std::byte*& operator[](int tensor) { return at_[static_cast<size_t>(tensor)]; }
  Pointers pointers() const { return {at_[0], at_[1], at_[2], at_[3], at_[4]}; }
  std::byte* middle() { return memory_.data() + 5120; }

 private:
  std::array<std::byte, 8192> memory_{};
  std::array<std::byte*, 5> at_{memory_.data(), memory_.data() + 512, memory_.data() + 1024,
                                memory_.data() + 1536, memory_.data() + 2048};
};

void expect_overlap(const PermuteWithEpGrad& plan, const Pointers& pointers, const char* output,
                    const char* other, int64_t bytes) {
  expect_rejected(output,
                  std::string("overlaps ") + other + " by " + std::to_string(bytes) +
                      " bytes, but an output must not share memory with any other tensor",
                  [&] { plan.bind(pointers); });
}

TEST(PermuteWithEpGradAddresses, NullTensorsAreNamed) {
  const PermuteWithEpGrad plan = PermuteWithEpGrad::plan(sample_args());
  constexpr const char* kShapes[] = {"[4, 2]", "[6]", "[4]", "[3, 2]", "[3, 2]"};
  for (int tensor = 0; tensor < kNumTensors; ++tensor) {
    Addresses at;
    at[tensor] = nullptr;
    expect_rejected<moe::NullArgument>(
        kNames[tensor],
        std::string("null, but needs the address of a tensor of shape ") + kShapes[tensor],
        [&] { plan.bind(at.pointers()); });
  }
}

// Every output against every other tensor, at every distance at which their bytes meet.
TEST(PermuteWithEpGradAddresses, OverlapsAtEveryDistance) {
  const PermuteWithEpGrad plan = PermuteWithEpGrad::plan(sample_args());
  for (int output = kNumInputs; output < kNumTensors; ++output) {
    for (int other = 0; other < output; ++other) {
      for (int64_t distance = -kBytes[output]; distance <= kBytes[other]; ++distance) {
        Addresses at;
        at[other] = at.middle();
        at[output] = at.middle() + distance;
        const int64_t shared =
            std::min(kBytes[other], distance + kBytes[output]) - std::max<int64_t>(0, distance);
        if (shared == 0) {
          EXPECT_NO_THROW(plan.bind(at.pointers())) << kNames[output] << " " << kNames[other];
        } else {
          expect_overlap(plan, at.pointers(), kNames[output], kNames[other], shared);
        }
      }
    }
  }
}

TEST(PermuteWithEpGradAddresses, InputsMayOverlap) {
  const PermuteWithEpGrad plan = PermuteWithEpGrad::plan(sample_args());
  Addresses at;
  at[1] = at[2] = at[0];
  EXPECT_NO_THROW(plan.bind(at.pointers()));
}

// From the lowest to the highest element: an output in the gaps of a strided input overlaps it; one
// in the part that an offset skips does not.
TEST(PermuteWithEpGradAddresses, RangesCountFromLowestToHighestElement) {
  Args args = sample_args();
  args.permuted_tokens_grad = TensorDesc::strided(DType::kF32, {4, 2}, {100, 1}, 20);
  const PermuteWithEpGrad plan = PermuteWithEpGrad::plan(args);
  const int64_t begin = 20 * 4, end = (20 + 300 + 2) * 4;
  Addresses at;
  at[0] = at.middle();
  at[3] = at.middle() + begin + 200;
  expect_overlap(plan, at.pointers(), "tokens_grad", "permuted_tokens_grad", 24);
  for (const int64_t distance : {int64_t{0}, begin - 24, end, end + 1}) {
    at[3] = at.middle() + distance;
    EXPECT_NO_THROW(plan.bind(at.pointers())) << distance;
  }
  at[3] = at.middle() + begin - 23;
  expect_overlap(plan, at.pointers(), "tokens_grad", "permuted_tokens_grad", 1);
  at[3] = at.middle() + end - 1;
  expect_overlap(plan, at.pointers(), "tokens_grad", "permuted_tokens_grad", 1);
}

TEST(PermuteWithEpGradAddresses, OffsetsOfOutputsCount) {
  Args args = sample_args();
  args.tokens_grad.offset = 10;
  const PermuteWithEpGrad plan = PermuteWithEpGrad::plan(args);
  Addresses at;
  at[0] = at.middle();
  at[3] = at.middle() - 40 - 24;
  EXPECT_NO_THROW(plan.bind(at.pointers()));
  at[3] = at.middle() - 40 - 23;
  expect_overlap(plan, at.pointers(), "tokens_grad", "permuted_tokens_grad", 1);
}

TEST(PermuteWithEpGradAddresses, StrideZeroTakesOneElement) {
  Args args = sample_args();
  args.permuted_probs_grad = TensorDesc::strided(DType::kF32, {4}, {0});
  const PermuteWithEpGrad plan = PermuteWithEpGrad::plan(args);
  Addresses at;
  at[2] = at.middle();
  at[4] = at.middle() + 4;
  EXPECT_NO_THROW(plan.bind(at.pointers()));
  at[4] = at.middle() + 3;
  expect_overlap(plan, at.pointers(), "probs_grad", "permuted_probs_grad", 1);
}

// Tensors without elements are nowhere: they may be null, or lie inside of others.
TEST(PermuteWithEpGradAddresses, EmptyTensorsOverlapNothing) {
  Args args = sample_args();
  args.ep_range = moe::EpRange{2, 2};
  args.permuted_tokens_grad = TensorDesc::contiguous(DType::kF32, {0, 2});
  args.permuted_probs_grad = TensorDesc::contiguous(DType::kF32, {0});
  const PermuteWithEpGrad plan = PermuteWithEpGrad::plan(args);
  Addresses at;
  at[0] = at[3] + 4;
  at[2] = at[4] + 4;
  EXPECT_NO_THROW(plan.bind(at.pointers()));
  at[0] = at[2] = nullptr;
  EXPECT_NO_THROW(plan.bind(at.pointers()));
}

TEST(PermuteWithEpGradAddresses, ARejectedCallChangesNothing) {
  const PermuteWithEpGrad plan = PermuteWithEpGrad::plan(sample_args());
  std::array<std::byte, 64> memory;
  memory.fill(std::byte{0x5a});
  const auto before = memory;
  Addresses at;
  at[3] = memory.data();
  at[4] = memory.data() + 8;
  EXPECT_THROW(plan.bind(at.pointers()).run(), moe::InvalidArgument);
  EXPECT_EQ(memory, before);
}

}  // namespace
}  // namespace test
