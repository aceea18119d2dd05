// SortByExpert against a naive stable sort, over ids of every kind, and its workspace.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "moe/moe.h"
#include "ops/rejection.h"
#include "ref/routing.h"
#include "support/guarded_buffer.h"

namespace test {
namespace {

using moe::DType, moe::SortByExpert, moe::TensorDesc;

struct SortCase {
  std::vector<int64_t> ids;
  std::optional<int64_t> num_experts{};
  DType sorted_dtype = DType::kI32;
  bool counts = false;
};

bool routed(int64_t id, const SortCase& c) {
  return id >= 0 && id < c.num_experts.value_or(int64_t{1} << 31);
}

std::vector<int64_t> expected(const SortCase& c) {
  std::vector<int64_t> experts = c.ids;
  for (int64_t& id : experts) id = routed(id, c) ? id : -1;
  return ref::inverse(ref::stable_argsort(experts));
}

SortByExpert::Args args_of(const SortCase& c) {
  const auto num_slots = static_cast<int64_t>(c.ids.size());
  SortByExpert::Args args{.indices = TensorDesc::contiguous(DType::kI64, {num_slots}),
                          .num_experts = c.num_experts,
                          .sorted_indices = TensorDesc::contiguous(c.sorted_dtype, {num_slots})};
  if (c.counts) args.tokens_per_expert = TensorDesc::contiguous(DType::kI64, {*c.num_experts});
  return args;
}

struct Sorted {
  std::vector<int64_t> places, counts;
};

Sorted run(const SortCase& c, int num_threads) {
  const size_t num_slots = c.ids.size();
  const bool wide = c.sorted_dtype == DType::kI64;
  const GuardedBuffer sorted(num_slots * (wide ? 8 : 4));
  Sorted result{std::vector<int64_t>(num_slots),
                std::vector<int64_t>(c.counts ? static_cast<size_t>(*c.num_experts) : 0, -5)};
  const auto plan = SortByExpert::plan(args_of(c), {.num_threads = num_threads});
  const GuardedBuffer workspace(plan.workspace_bytes(), 1);
  plan.bind({c.ids.data(), sorted.data(), result.counts.data()})
      .run(workspace.size() ? workspace.data() : nullptr);
  EXPECT_TRUE(workspace.intact() && sorted.intact()) << "bytes around an output were written";
  for (size_t i = 0; i < num_slots; ++i) {
    int32_t narrow = 0;
    if (wide) std::memcpy(&result.places[i], sorted.data() + 8 * i, 8);
    if (!wide) std::memcpy(&narrow, sorted.data() + 4 * i, 4), result.places[i] = narrow;
  }
  return result;
}

void expect_sorts(const SortCase& c) {
  const std::vector<int64_t> want = expected(c);
  for (const int threads : {1, 2, 3, 7}) {
    SCOPED_TRACE(testing::Message() << c.ids.size() << " slots on " << threads << " threads");
    const Sorted got = run(c, threads);
    EXPECT_TRUE(got.places == want) << "sorted_indices differ";
    for (size_t e = 0; e < got.counts.size(); ++e) {
      ASSERT_EQ(got.counts[e], std::count(c.ids.begin(), c.ids.end(), static_cast<int64_t>(e)));
    }
  }
}

std::vector<int64_t> random_ids(int64_t count, int64_t first, int64_t spread, uint64_t seed) {
  ref::Random random(seed);
  std::vector<int64_t> ids(static_cast<size_t>(count));
  for (int64_t& id : ids) id = first + random.below(spread);
  return ids;
}

TEST(SortByExpert, AsStdStableSort) {
  for (const int64_t num_slots : {0, 1, 2, 3, 5, 17, 300, 4096}) {
    for (const int64_t experts : {1, 2, 8, 256, 1000}) {
      for (const DType sorted : {DType::kI32, DType::kI64}) {
        SortCase c{random_ids(num_slots, -2, experts + 4, 7), experts, sorted, experts < 300};
        expect_sorts(c);
        c.num_experts.reset();
        c.counts = false;
        expect_sorts(c);
      }
    }
  }
}

TEST(SortByExpert, OnSeveralThreads) {
  for (const int64_t experts : {3, 64, 5000}) {
    expect_sorts({random_ids(120000, -1, experts + 2, 8), experts, DType::kI32, experts < 9});
    expect_sorts({random_ids(120000, 1000000, experts, 9)});
  }
}

// Ids too sparse for a counter each: digits, in any number of passes.
TEST(SortByExpert, SparseIds) {
  for (const int64_t num_slots : {2, 3, 4, 7, 64, 5000}) {
    for (const int64_t spread : {100, 70000, 1 << 24}) {
      expect_sorts({random_ids(num_slots, 12345, spread, 10)});
    }
    expect_sorts({random_ids(num_slots, -5, int64_t{1} << 32, 11), {}, DType::kI64});
  }
  expect_sorts({random_ids(120000, 0, (int64_t{1} << 31) + 1000, 12)});
  expect_sorts({{0x7fffffff, 0, 0x80000000, INT64_MIN, INT64_MAX, 0x7fffffff, 0}});
}

TEST(SortByExpert, FarMoreExpertsThanSlots) {
  expect_sorts({{70000, 3, -1, 99999, 3, 100000, 70000}, 100000, DType::kI32, true});
  expect_sorts({{}, 100000, DType::kI32, true});
}

TEST(SortByExpert, AllUnroutedKeepTheirOrder) {
  expect_sorts({std::vector<int64_t>(50, -1), 4, DType::kI32, true});
  expect_sorts({std::vector<int64_t>(50, -1)});
}

TEST(SortByExpert, WorkspaceIsWhatTheHeaderSays) {
  const auto bytes = [](int64_t num_slots, std::optional<int64_t> experts, int threads) {
    SortCase c{std::vector<int64_t>(static_cast<size_t>(num_slots)), experts};
    return SortByExpert::plan(args_of(c), {.num_threads = threads}).workspace_bytes();
  };
  EXPECT_EQ(bytes(1000, 256, 8), 257u * 4);
  EXPECT_LE(bytes(1000000, 256, 8), 8u * (257 * 4 + 128));
  EXPECT_LE(bytes(1000000, std::nullopt, 8), 3u * 4 * 1000000);
  EXPECT_LE(bytes(10, 1000000, 8), 3u * 4 * 10);
  EXPECT_EQ(bytes(0, std::nullopt, 8), 0u);
}

// One kernel, which every name means.
TEST(SortByExpert, AnswersToEveryKernelName) {
  const SortCase c{{1, 0}};
  EXPECT_EQ(SortByExpert::plan(args_of(c)).kernel_name(), "portable");
  for (const std::string& kernel : moe::PermuteWithEp::kernel_names()) {
    EXPECT_EQ(SortByExpert::plan(args_of(c), {.kernel = kernel}).kernel_name(), kernel);
  }
  EXPECT_THROW(SortByExpert::plan(args_of(c), {.kernel = "abacus"}), moe::InvalidArgument);
}

TEST(SortByExpert, Rejects) {
  SortByExpert::Args args = args_of({{1, 0, 2}});
  args.num_experts = (int64_t{1} << 31) + 1;
  expect_rejected("num_experts", "2147483649, but needs 0 to 2^31",
                  [&] { SortByExpert::plan(args); });
  args.num_experts.reset();

  // By a stride of 0 so many can be described, and a few ints for each would leave 64 bits.
  constexpr int64_t kMost = int64_t{1} << 56;
  SortByExpert::Args huge{.indices = TensorDesc::strided(DType::kI64, {kMost}, {0}),
                          .sorted_indices = TensorDesc::contiguous(DType::kI64, {kMost})};
  EXPECT_EQ(SortByExpert::plan(huge).workspace_bytes(), size_t{3} * kMost * 8);
  huge.indices.shape[0] = huge.sorted_indices.shape[0] = kMost + 1;
  expect_rejected("indices", "72057594037927937 slots, but takes at most 2^56",
                  [&] { SortByExpert::plan(huge); });

  int64_t ids[4] = {1, 0, 2, 0};
  const auto plan = SortByExpert::plan(args);
  expect_rejected(
      "sorted_indices",
      "overlaps indices by 12 bytes, but an output must not share memory with any other "
      "tensor",
      [&] { plan.bind({ids, ids, nullptr}); });
  expect_rejected<moe::NullArgument>("sorted_indices",
                                     "null, but needs the address of a tensor of shape [3]",
                                     [&] { plan.bind({ids, nullptr, nullptr}); });
}

}  // namespace
}  // namespace test
