// Chunks of work cover every byte of every token's row once, whatever the shape.
#include "cpu/cut.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace {

void expect_covered_once(int64_t num_tokens, int64_t row_bytes, int num_threads) {
  SCOPED_TRACE(testing::Message() << num_tokens << " tokens of " << row_bytes << " bytes, "
                                  << num_threads << " threads");
  const moe::cpu::Cut cut(num_tokens, row_bytes, static_cast<double>(row_bytes) * 3 + 1,
                          num_threads);
  EXPECT_GE(cut.num_workers(), 1);
  EXPECT_LE(cut.num_workers(), num_threads);
  int64_t area = 0;
  std::vector<int64_t> bytes_of_token(static_cast<size_t>(num_tokens));
  for (int64_t i = 0; i < cut.num_chunks(); ++i) {
    const moe::cpu::Chunk chunk = cut[i];
    ASSERT_TRUE(0 <= chunk.first_token && chunk.first_token < chunk.last_token &&
                chunk.last_token <= num_tokens);
    ASSERT_TRUE(0 <= chunk.first_byte && chunk.first_byte <= chunk.last_byte &&
                chunk.last_byte <= row_bytes);
    EXPECT_EQ(chunk.first_byte % 512, 0);
    for (int64_t token = chunk.first_token; token < chunk.last_token; ++token) {
      // In order of chunks a token's parts follow one another.
      int64_t& bytes = bytes_of_token[static_cast<size_t>(token)];
      ASSERT_EQ(chunk.first_byte, bytes);
      bytes = chunk.last_byte;
    }
    area += (chunk.last_token - chunk.first_token) * (chunk.last_byte - chunk.first_byte);
  }
  EXPECT_EQ(area, num_tokens * row_bytes);
  for (const int64_t bytes : bytes_of_token) ASSERT_EQ(bytes, row_bytes);
}

TEST(Cut, CoversEveryByteOnce) {
  for (const int threads : {1, 2, 3, 7, 64}) {
    for (const int64_t tokens : {1, 2, 3, 5, 64, 1000, 4099}) {
      for (const int64_t bytes : {1, 2, 511, 512, 513, 4097, 14336, 1000001}) {
        expect_covered_once(tokens, bytes, threads);
      }
    }
  }
}

// Rows without elements still have probabilities to copy: their tokens are in a chunk.
TEST(Cut, RowsWithoutBytes) {
  for (const int threads : {1, 3}) expect_covered_once(77, 0, threads);
}

TEST(Cut, WithoutTokensThereIsNothing) {
  for (const int64_t bytes : {int64_t{0}, int64_t{5}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(moe::cpu::Cut(0, bytes, static_cast<double>(bytes) + 1, 4).num_chunks(), 0);
  }
}

}  // namespace
