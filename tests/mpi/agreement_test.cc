// Ranks that disagree, and arguments that are wrong everywhere: every rank throws the same.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "moe/mpi.h"

namespace {

using moe::DType;
using moe::InvalidArgument;
using moe::mpi::ExchangeForm;
using moe::mpi::ExpertExchange;
using Args = ExpertExchange::Args;

constexpr Args kArgs{.num_experts = 8, .top_k = 2, .hidden_size = 4};

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing thrown";
}

// What all ranks throw when the last one has other arguments.
std::string disagreement(const std::function<void(Args&)>& change) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Args args = kArgs;
  if (rank == size - 1) change(args);
  return message_of([&] { ExpertExchange(MPI_COMM_WORLD, args); });
}

std::string expected(const std::string& argument, const std::string& got, const std::string& want) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return argument + ": rank " + std::to_string(size - 1) + " has " + got + ", but rank 0 has " +
         want + ", and all ranks must agree";
}

class Disagreement : public testing::Test {
 protected:
  void SetUp() override {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size == 1) GTEST_SKIP() << "one rank agrees with itself";
  }
};

TEST_F(Disagreement, SaysWhichRankAndWhat) {
  EXPECT_EQ(disagreement([](Args& a) { a.num_experts = 9; }), expected("num_experts", "9", "8"));
  EXPECT_EQ(disagreement([](Args& a) { a.top_k = 3; }), expected("top_k", "3", "2"));
  EXPECT_EQ(disagreement([](Args& a) { a.hidden_size = 0; }), expected("hidden_size", "0", "4"));
  EXPECT_EQ(disagreement([](Args& a) { a.num_chunks = 2; }), expected("num_chunks", "2", "1"));
  EXPECT_EQ(disagreement([](Args& a) { a.dtype = DType::kBF16; }),
            expected("dtype", "bfloat16", "float32"));
  EXPECT_EQ(disagreement([](Args& a) { a.probs_dtype = std::nullopt; }),
            expected("probs_dtype", "none", "float32"));
  EXPECT_EQ(disagreement([](Args& a) { a.form = ExchangeForm::kAllGather; }),
            expected("form", "all-gather", "all-to-all"));
}

TEST_F(Disagreement, ANegativeCountOnOneRankIsThrownByAll) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  ExpertExchange exchange(MPI_COMM_WORLD, kArgs);
  const int64_t num_tokens = rank == size - 1 ? -3 : 0;
  EXPECT_EQ(message_of([&] { exchange.route(num_tokens, nullptr, nullptr); }),
            "num_tokens: -3 on rank " + std::to_string(size - 1) + ", but needs >= 0");
}

TEST(Arguments, OutsideTheirRangeAreRejected) {
  const auto rejected = [](const std::function<void(Args&)>& change) {
    Args args = kArgs;
    change(args);
    return message_of([&] { ExpertExchange(MPI_COMM_WORLD, args); });
  };
  EXPECT_EQ(rejected([](Args& a) { a.num_experts = 0; }),
            "num_experts: 0, but needs a number from 1 to 2147483647");
  EXPECT_EQ(rejected([](Args& a) { a.top_k = 0; }),
            "top_k: 0, but needs a number from 1 to 268435455");
  EXPECT_EQ(rejected([](Args& a) { a.hidden_size = int64_t{1} << 29; }),
            "hidden_size: 536870912, but needs a number from 1 to 536870911");
  EXPECT_EQ(rejected([](Args& a) { a.num_chunks = -1; }),
            "num_chunks: -1, but needs a number from 1 to 2147483647");
  EXPECT_EQ(rejected([](Args& a) { a.dtype = DType::kI32; }),
            "dtype: int32, but needs float32, float16, bfloat16 or float64");
  EXPECT_EQ(rejected([](Args& a) { a.dtype = static_cast<DType>(77); }),
            "dtype: no dtype, but needs float32, float16, bfloat16 or float64");
  EXPECT_EQ(rejected([](Args& a) { a.form = static_cast<ExchangeForm>(7); }),
            "form: 7, but needs all-gather or all-to-all");
  EXPECT_EQ(rejected([](Args& a) { a.probs_dtype = DType::kF64; }),
            "probs_dtype: float64, but dtype is float32: float64 goes with float64 only");
}

TEST(Arguments, AChunkThatMpiCannotCountIsRejected) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  ExpertExchange exchange(MPI_COMM_WORLD, kArgs);
  const int64_t num_tokens = (int64_t{1} << 30) / size + 1;  // of two slots each
  const std::string message = message_of([&] { exchange.route(num_tokens, nullptr, nullptr); });
  EXPECT_NE(message.find("num_chunks: 1 make chunks of up to " + std::to_string(num_tokens * size) +
                         " tokens of all ranks"),
            std::string::npos)
      << message;
}

TEST(Arguments, TokensThatMpiCannotCountAreRejected) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  auto args = kArgs;
  args.num_chunks = 1 << 20;
  ExpertExchange exchange(MPI_COMM_WORLD, args);
  for (const int64_t num_tokens : {(int64_t{1} << 31) / size + 1, INT64_MAX}) {
    EXPECT_EQ(message_of([&] { exchange.route(num_tokens, nullptr, nullptr); }),
              "num_tokens: 2^31 or more on all ranks together, but needs fewer");
  }
}

}  // namespace
