// Forward and backward over the ranks of the job against the whole layer computed naively, and the
// payload against its model. No test gives up in the middle: the other ranks would wait.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "mpi/layer_case.h"

namespace {

using moe::DType;
using moe::mpi::ExchangeForm;
using moe::mpi::Traffic;
using test::Answers;
using test::Choice;
using test::Counts;
using test::Layer;
using test::LayerCase;
using test::RankAnswers;
using test::Sum;

constexpr ExchangeForm kForms[] = {ExchangeForm::kAllGather, ExchangeForm::kAllToAll};
constexpr Counts kCounts[] = {Counts::kEven, Counts::kUneven, Counts::kOneEmpty, Counts::kOnlyLast,
                              Counts::kNone};
constexpr Choice kChoices[] = {Choice::kRandom, Choice::kOneExpert, Choice::kUnrouted};

int rank_of_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int size_of_world() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

// `got` are the elements of `want` from `first` on. `tolerance` times the sum of the terms'
// magnitudes; 0 for integers. NaN, which stands where nothing was written, fails, too.
void expect_sums(const char* name, const std::vector<double>& got, const std::vector<Sum>& want,
                 int64_t first, double tolerance) {
  for (size_t i = 0; i < got.size(); ++i) {
    const Sum& sum = want[static_cast<size_t>(first) + i];
    EXPECT_LE(std::abs(got[i] - sum.value), tolerance * sum.magnitude)
        << name << "[" << i << "]: got " << got[i] << ", want " << sum.value;
    if (testing::Test::HasFailure()) return;
  }
}

void expect_bytes(const char* name, Traffic::Bytes got, Traffic::Bytes want) {
  EXPECT_EQ(got.sent, want.sent) << name;
  EXPECT_EQ(got.received, want.received) << name;
}

void expect_traffic(const Traffic& got, const Traffic& want) {
  expect_bytes("routing", got.routing, want.routing);
  expect_bytes("rows", got.rows, want.rows);
  expect_bytes("partials", got.partials, want.partials);
  expect_bytes("probs_grad", got.probs_grad, want.probs_grad);
}

void check(const LayerCase& c, double tolerance = 0) {
  SCOPED_TRACE(testing::Message() << "rank " << rank_of_world() << " of " << size_of_world() << ": "
                                  << c);
  const int rank = rank_of_world();
  const Layer layer = make_layer(c, size_of_world());
  const Answers want = expected_answers(c, layer);
  const RankAnswers got = run_layer(c, layer, MPI_COMM_WORLD);
  const int64_t first = layer.first_token(rank);
  expect_sums("out", got.out, want.out, first * c.args.hidden_size, tolerance);
  expect_sums("tokens_grad", got.tokens_grad, want.tokens_grad, first * c.args.hidden_size,
              tolerance);
  expect_sums("probs_grad", got.probs_grad, want.probs_grad, first * c.args.top_k, tolerance);
  std::vector<double> experts_grad(got.experts_grad.size());
  MPI_Allreduce(got.experts_grad.data(), experts_grad.data(), static_cast<int>(c.args.num_experts),
                MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  expect_sums("experts_grad", experts_grad, want.experts_grad, 0, tolerance);
  expect_traffic(got.traffic, expected_traffic(c, layer, rank));
}

TEST(Exchange, IntegersAreExactForAllCountsAndChoices) {
  uint64_t seed = 1;
  for (const ExchangeForm form : kForms) {
    for (const Counts counts : kCounts) {
      for (const Choice choice : kChoices) {
        for (const int64_t num_chunks : {1, 3}) {
          check({.args = {.num_experts = 13,
                          .top_k = 4,
                          .hidden_size = 17,
                          .form = form,
                          .num_chunks = num_chunks},
                 .counts = counts,
                 .choice = choice,
                 .seed = seed++});
        }
      }
    }
  }
}

TEST(Exchange, IntegersAreExactInEveryDType) {
  for (const ExchangeForm form : kForms) {
    for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF64}) {
      const DType probs = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
      for (const DType probs_dtype : {dtype, probs}) {
        check({.args = {.num_experts = 16,
                        .top_k = 3,
                        .hidden_size = 9,
                        .dtype = dtype,
                        .probs_dtype = probs_dtype,
                        .form = form,
                        .num_chunks = 2},
               .seed = 7});
      }
    }
  }
}

TEST(Exchange, WithoutProbsEveryWeightIsOne) {
  for (const ExchangeForm form : kForms) {
    for (const int64_t num_chunks : {1, 4}) {
      check({.args = {.num_experts = 6,
                      .top_k = 2,
                      .hidden_size = 8,
                      .probs_dtype = std::nullopt,
                      .form = form,
                      .num_chunks = num_chunks},
             .seed = 3});
    }
  }
}

TEST(Exchange, AnyNumberOfExpertsForAnyNumberOfRanks) {
  for (const ExchangeForm form : kForms) {
    for (const int64_t num_experts : {1, 2, 3, 5, 8, 64}) {
      for (const int64_t top_k : {1, 2, 9}) {
        check({.args = {.num_experts = num_experts,
                        .top_k = top_k,
                        .hidden_size = 3,
                        .form = form,
                        .num_chunks = 2},
               .seed = static_cast<uint64_t>(num_experts * 10 + top_k)});
      }
    }
  }
}

TEST(Exchange, MoreChunksThanTokens) {
  for (const ExchangeForm form : kForms) {
    check({.args = {.num_experts = 4, .top_k = 2, .hidden_size = 4, .form = form, .num_chunks = 40},
           .seed = 5});
  }
}

// Each partial sum rounds once in the dtype, and so does their sum.
TEST(Exchange, RealNumbersWithinTheirRounding) {
  for (const ExchangeForm form : kForms) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      LayerCase c{
          .args = {.num_experts = 16, .top_k = 4, .hidden_size = 64, .form = form, .num_chunks = 2},
          .integers = false,
          .seed = seed};
      check(c, 1e-6);
      c.args.dtype = DType::kBF16;
      check(c, 3 * 0x1p-8);
    }
  }
}

TEST(Exchange, BothFormsGiveTheSameValues) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    LayerCase c{.args = {.num_experts = 24,
                         .top_k = 6,
                         .hidden_size = 33,
                         .dtype = dtype,
                         .form = ExchangeForm::kAllGather},
                .integers = false,
                .seed = 11};
    const Layer layer = make_layer(c, size_of_world());
    const RankAnswers gathered = run_layer(c, layer, MPI_COMM_WORLD);
    c.args.form = ExchangeForm::kAllToAll;
    c.args.num_chunks = 3;
    const RankAnswers sent = run_layer(c, layer, MPI_COMM_WORLD);
    EXPECT_EQ(gathered.out, sent.out);
    EXPECT_EQ(gathered.tokens_grad, sent.tokens_grad);
    EXPECT_EQ(gathered.probs_grad, sent.probs_grad);
  }
}

}  // namespace
