// Calls that nobody means: valid ones with random faults in their descriptions, windows and
// addresses. Each is rejected by the name of an argument, or runs inside its buffers and writes
// every element of its outputs, on a kernel of this machine. Tensors without elements are null.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "moe/moe.h"
#include "ops/values.h"
#include "ref/routing.h"
#include "support/effort.h"
#include "support/guarded_buffer.h"

namespace test {
namespace {

using moe::DType;
using moe::EpRange;
using moe::TensorDesc;

constexpr int64_t kHuge[] = {int64_t{1} << 31, int64_t{1} << 32, int64_t{1} << 62, INT64_MAX,
                             INT64_MIN};
constexpr int64_t kMostBytes = 1 << 20;  // larger calls are planned, not run

template <class T, size_t N>
T any_of(const T (&values)[N], ref::Random& random) {
  return values[random.below(static_cast<int64_t>(N))];
}

int64_t hostile_number(int64_t near, ref::Random& random) {
  switch (random.below(5)) {
    case 0:
      return any_of(kHuge, random);
    case 1:
      return -1;
    case 2:
      return 0;
    default:
      return near + random.below(3) - 1;
  }
}

// A tensor of the arguments, in the order of the operator's Pointers.
struct Operand {
  TensorDesc* desc;  // null: absent
  bool is_output;
};

Operand operand(TensorDesc& desc, bool is_output) { return {&desc, is_output}; }
Operand operand(std::optional<TensorDesc>& desc, bool is_output) {
  return {desc ? &*desc : nullptr, is_output};
}

struct Sizes {
  int64_t num_tokens, top_k, hidden_size, rows;
  EpRange window;
  DType dtype, index_dtype;
  bool with_probs, with_range;

  explicit Sizes(ref::Random& random)
      : num_tokens(random.below(6)),
        top_k(1 + random.below(4)),
        hidden_size(random.below(70)),
        dtype(any_of(kFloatDTypes, random)),
        index_dtype(random.below(2) ? DType::kI32 : DType::kI64),
        with_probs(random.below(2)),
        with_range(random.below(2)) {
    window.begin = random.below(num_slots() + 1);
    window.end = window.begin + random.below(num_slots() - window.begin + 1);
    rows = window.end - window.begin + random.below(3);
  }
  int64_t num_slots() const { return num_tokens * top_k; }
  std::optional<EpRange> range() const { return with_range ? std::optional(window) : std::nullopt; }
  TensorDesc tokens() const { return TensorDesc::contiguous(dtype, {num_tokens, hidden_size}); }
  TensorDesc permuted() const { return TensorDesc::contiguous(dtype, {rows, hidden_size}); }
  TensorDesc slots() const { return TensorDesc::contiguous(index_dtype, {num_slots()}); }
  std::optional<TensorDesc> probs(std::initializer_list<int64_t> shape) const {
    if (!with_probs) return std::nullopt;
    return TensorDesc::contiguous(dtype, shape);
  }
};

// How each operator's valid call looks, and which tensors and numbers it has.
struct PermuteCall {
  using Op = moe::PermuteWithEp;
  static Op::Args args(const Sizes& s) {
    return {.tokens = s.tokens(),
            .indices = TensorDesc::contiguous(s.index_dtype, {s.num_tokens, s.top_k}),
            .probs = s.probs({s.num_tokens, s.top_k}),
            .ep_range = s.range(),
            .num_experts = s.with_range ? std::optional<int64_t>(5) : std::nullopt,
            .permuted_tokens = s.permuted(),
            .sorted_indices = s.slots(),
            .permuted_probs = s.probs({s.rows}),
            .tokens_per_expert =
                s.with_range ? std::optional(TensorDesc::contiguous(s.index_dtype, {int64_t{5}}))
                             : std::nullopt};
  }
  static std::vector<Operand> operands(Op::Args& a) {
    return {operand(a.tokens, false),          operand(a.indices, false),
            operand(a.probs, false),           operand(a.permuted_tokens, true),
            operand(a.sorted_indices, true),   operand(a.permuted_probs, true),
            operand(a.tokens_per_expert, true)};
  }
  static int64_t* number(Op::Args& a) { return a.num_experts ? &*a.num_experts : nullptr; }
};

struct PermuteGradCall {
  using Op = moe::PermuteWithEpGrad;
  static Op::Args args(const Sizes& s) {
    return {.permuted_tokens_grad = s.permuted(),
            .sorted_indices = s.slots(),
            .permuted_probs_grad = s.probs({s.rows}),
            .top_k = s.top_k,
            .ep_range = s.range(),
            .tokens_grad = s.tokens(),
            .probs_grad = s.probs({s.num_tokens, s.top_k})};
  }
  static std::vector<Operand> operands(Op::Args& a) {
    return {operand(a.permuted_tokens_grad, false), operand(a.sorted_indices, false),
            operand(a.permuted_probs_grad, false), operand(a.tokens_grad, true),
            operand(a.probs_grad, true)};
  }
  static int64_t* number(Op::Args& a) { return &a.top_k; }
};

struct UnpermuteCall {
  using Op = moe::UnpermuteWithEp;
  static Op::Args args(const Sizes& s) {
    return {.permuted_tokens = s.permuted(),
            .sorted_indices = s.slots(),
            .probs = s.probs({s.num_tokens, s.top_k}),
            .top_k = s.top_k,
            .ep_range = s.range(),
            .out = s.tokens()};
  }
  static std::vector<Operand> operands(Op::Args& a) {
    return {operand(a.permuted_tokens, false), operand(a.sorted_indices, false),
            operand(a.probs, false), operand(a.out, true)};
  }
  static int64_t* number(Op::Args& a) { return &a.top_k; }
};

struct UnpermuteGradCall {
  using Op = moe::UnpermuteWithEpGrad;
  static Op::Args args(const Sizes& s) {
    Op::Args a{.unpermuted_tokens_grad = s.tokens(),
               .sorted_indices = s.slots(),
               .probs = s.probs({s.num_tokens, s.top_k}),
               .top_k = s.top_k,
               .ep_range = s.range(),
               .permuted_tokens_grad = s.permuted(),
               .probs_grad = s.probs({s.num_tokens, s.top_k})};
    if (s.with_probs) a.permuted_tokens = s.permuted();
    return a;
  }
  static std::vector<Operand> operands(Op::Args& a) {
    return {operand(a.unpermuted_tokens_grad, false), operand(a.sorted_indices, false),
            operand(a.permuted_tokens, false),        operand(a.probs, false),
            operand(a.permuted_tokens_grad, true),    operand(a.probs_grad, true)};
  }
  static int64_t* number(Op::Args& a) { return &a.top_k; }
};

struct SortCall {
  using Op = moe::SortByExpert;
  static Op::Args args(const Sizes& s) {
    return {.indices = TensorDesc::contiguous(s.index_dtype, {s.num_tokens, s.top_k}),
            .num_experts = 7,
            .sorted_indices = s.slots(),
            .tokens_per_expert = TensorDesc::contiguous(s.index_dtype, {int64_t{7}})};
  }
  static std::vector<Operand> operands(Op::Args& a) {
    return {operand(a.indices, false), operand(a.sorted_indices, true),
            operand(a.tokens_per_expert, true)};
  }
  static int64_t* number(Op::Args& a) { return &*a.num_experts; }
};

void break_tensor(TensorDesc& desc, ref::Random& random) {
  const auto dim = static_cast<size_t>(random.below(3));
  switch (random.below(8)) {
    case 0:
      desc.dtype = static_cast<DType>(random.below(8));  // two of them name no dtype
      break;
    case 1:
      desc.num_dims = static_cast<int>(random.below(12)) - 1;
      break;
    case 2:
    case 3:
      desc.shape[dim] = hostile_number(desc.shape[dim], random);
      break;
    case 4:
      desc.offset = hostile_number(3, random);
      break;
    default:  // strides of inputs may be many things
      desc.strides[dim] = hostile_number(desc.strides[dim], random);
  }
}

template <class Call>
void break_args(typename Call::Op::Args& args, ref::Random& random) {
  const std::vector<Operand> operands = Call::operands(args);
  const Operand& one =
      operands[static_cast<size_t>(random.below(static_cast<int64_t>(operands.size())))];
  int64_t* const number = Call::number(args);
  const int64_t fault = random.below(8);
  if (fault == 0 && number != nullptr) {
    *number = hostile_number(*number, random);
  } else if (one.desc != nullptr) {
    break_tensor(*one.desc, random);
  }
  if constexpr (requires { args.ep_range; }) {
    if (fault == 1) {
      args.ep_range = EpRange{hostile_number(1, random), hostile_number(4, random)};
    }
  }
  args.check_indices = random.below(8) == 0;
}

// Bytes from the base address to the end of the last element; a large number where they are many.
int64_t bytes_of(const TensorDesc* desc) {
  if (desc == nullptr) return 0;
  __int128 last = desc->offset;
  for (int d = 0; d < desc->num_dims; ++d) {
    const auto dim = static_cast<size_t>(d);
    if (desc->shape[dim] == 0) return 0;
    if (desc->shape[dim] > 1) last += __int128{desc->shape[dim] - 1} * desc->strides[dim];
  }
  const __int128 bytes = (last + 1) * moe::dtype_bytes(desc->dtype);
  return bytes > kMostBytes ? kMostBytes + 1 : static_cast<int64_t>(bytes);
}

// Random bits of numbers; small integers, some out of place, where they are integers.
void fill_input(const GuardedBuffer& buffer, DType dtype, ref::Random& random) {
  const bool is_index = dtype == DType::kI32 || dtype == DType::kI64;
  const int64_t bytes = moe::dtype_bytes(dtype);
  for (int64_t i = 0; i < static_cast<int64_t>(buffer.size()) / bytes; ++i) {
    const uint64_t bits = is_index ? static_cast<uint64_t>(random.below(24) - 2)
                                   : random_bits(dtype, Values::kFinite, random);
    store_bits(buffer.data(), i, bytes, bits);
  }
}

// The buffers of a call, each of exactly the bytes that its description spans.
template <class Call>
class Memory {
 public:
  using Pointers = typename Call::Op::Pointers;
  static constexpr size_t kCount = sizeof(Pointers) / sizeof(void*);

  Memory(const std::vector<Operand>& operands, ref::Random& random) : operands_(operands) {
    for (size_t i = 0; i < kCount; ++i) {
      const auto bytes = static_cast<size_t>(bytes_of(operands[i].desc));
      buffers_[i] = std::make_unique<GuardedBuffer>(bytes, static_cast<size_t>(random.below(3)));
      if (bytes > 0) addresses_[i] = buffers_[i]->data();
      if (operands[i].desc && !operands[i].is_output) {
        fill_input(*buffers_[i], operands[i].desc->dtype, random);
      }
    }
  }

  std::array<void*, kCount>& addresses() { return addresses_; }
  Pointers pointers() const { return std::bit_cast<Pointers>(addresses_); }

  void poison(int value) const {
    for (size_t i = 0; i < kCount; ++i) {
      if (operands_[i].is_output) buffers_[i]->fill(value);
    }
  }

  // The elements of all outputs, one after another; an offset's gap is no element.
  std::vector<std::byte> outputs() const {
    std::vector<std::byte> all;
    for (size_t i = 0; i < kCount; ++i) {
      if (!operands_[i].is_output || buffers_[i]->size() == 0) continue;
      const TensorDesc& desc = *operands_[i].desc;
      const std::byte* data = buffers_[i]->data();
      all.insert(all.end(), data + desc.offset * moe::dtype_bytes(desc.dtype),
                 data + buffers_[i]->size());
    }
    return all;
  }

  bool intact() const {
    return std::all_of(buffers_.begin(), buffers_.end(), [](auto& b) { return b->intact(); });
  }

 private:
  std::vector<Operand> operands_;
  std::array<std::unique_ptr<GuardedBuffer>, kCount> buffers_;
  std::array<void*, kCount> addresses_{};
};

// Whether a call with a null address, or with an output where another tensor lies, was rejected.
template <class Call>
void expect_bad_addresses_are_rejected(const typename Call::Op& plan, const Memory<Call>& memory,
                                       const std::vector<Operand>& operands, ref::Random& random) {
  constexpr auto kCount = static_cast<int64_t>(Memory<Call>::kCount);
  const auto a = static_cast<size_t>(random.below(kCount)),
             b = static_cast<size_t>(random.below(kCount));
  auto addresses = std::bit_cast<std::array<void*, static_cast<size_t>(kCount)>>(memory.pointers());
  if (addresses[a] == nullptr) return;
  const auto bind = [&](const auto& with) {
    plan.bind(std::bit_cast<typename Call::Op::Pointers>(with));
  };
  auto with_null = addresses;
  with_null[a] = nullptr;
  EXPECT_THROW(bind(with_null), moe::NullArgument);
  if (a == b || addresses[b] == nullptr) return;
  if (!operands[a].is_output && !operands[b].is_output) return;
  // The first elements of both lie at the same address.
  const auto first = [&](size_t i) {
    return operands[i].desc->offset * moe::dtype_bytes(operands[i].desc->dtype);
  };
  addresses[a] = static_cast<std::byte*>(addresses[b]) + first(b) - first(a);
  EXPECT_THROW(bind(addresses), moe::InvalidArgument);
}

// Runs twice over different poisons: what stays of them differs.
template <class Call>
void run_and_compare(const typename Call::Op& plan, const Memory<Call>& memory) {
  const GuardedBuffer workspace(plan.workspace_bytes(), 1);
  std::vector<std::byte> outputs[2];
  for (const int round : {0, 1}) {
    memory.poison(round == 0 ? 0 : 0xff);
    try {
      plan.bind(memory.pointers()).run(workspace.data());
    } catch (const moe::IndexError&) {
      EXPECT_EQ(memory.outputs(),
                std::vector<std::byte>(memory.outputs().size(), std::byte(round == 0 ? 0 : 0xff)));
      return;
    }
    outputs[round] = memory.outputs();
  }
  EXPECT_TRUE(outputs[0] == outputs[1]) << "an element of an output is not written";
  EXPECT_TRUE(memory.intact() && workspace.intact()) << "a write outside a tensor";
}

struct Counts {
  int64_t rejected = 0, planned = 0, run = 0;
};

template <class Call>
void try_one(ref::Random& random, Counts& counts) {
  using Op = typename Call::Op;
  typename Op::Args args = Call::args(Sizes(random));
  for (int64_t faults = random.below(3); faults > 0; --faults) break_args<Call>(args, random);
  const std::vector<Operand> operands = Call::operands(args);
  std::optional<Op> plan;
  try {
    const std::vector<std::string> kernels = Op::kernel_names();
    const auto kernel = static_cast<size_t>(random.below(static_cast<int64_t>(kernels.size())));
    plan.emplace(Op::plan(args, {.num_threads = 1, .kernel = kernels[kernel]}));
  } catch (const moe::InvalidArgument& error) {
    ++counts.rejected;
    EXPECT_FALSE(error.argument().empty());
    EXPECT_EQ(std::string(error.what()).rfind(error.argument() + ": ", 0), 0u) << error.what();
    return;
  }
  ++counts.planned;
  int64_t bytes = 0;
  for (const Operand& one : operands) bytes = std::max(bytes, bytes_of(one.desc));
  if (bytes > kMostBytes || plan->workspace_bytes() > size_t{kMostBytes}) return;
  ++counts.run;
  const Memory<Call> memory(operands, random);
  expect_bad_addresses_are_rejected<Call>(*plan, memory, operands, random);
  run_and_compare<Call>(*plan, memory);
}

template <class Call>
class Hostile : public testing::Test {};
using Calls =
    testing::Types<PermuteCall, PermuteGradCall, UnpermuteCall, UnpermuteGradCall, SortCall>;
TYPED_TEST_SUITE(Hostile, Calls);

TYPED_TEST(Hostile, RejectedByNameOrInBounds) {
  Counts counts;
  for (int64_t seed = 0; seed < effort(5000); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ref::Random random(static_cast<uint64_t>(seed));
    try_one<TypeParam>(random, counts);
    if (this->HasFailure()) return;
  }
  // Both happen often, or the faults are not what they should be.
  EXPECT_GT(counts.rejected, effort(5000) / 10);
  EXPECT_GT(counts.run, effort(5000) / 10);
}

TYPED_TEST(Hostile, AMovedFromPlanIsStillAPlan) {
  using Op = typename TypeParam::Op;
  ref::Random random(1);
  typename Op::Args args = TypeParam::args(Sizes(random));
  Op plan = Op::plan(args);
  const Op moved(std::move(plan));
  const Memory<TypeParam> memory(TypeParam::operands(args), random);
  run_and_compare<TypeParam>(plan, memory);  // NOLINT(bugprone-use-after-move)
  run_and_compare<TypeParam>(moved, memory);
}

}  // namespace
}  // namespace test
