// How an operator's work is cut into chunks: a grid of token ranges and, where tokens are few,
// parts of their rows.
#pragma once

#include <cstdint>

namespace moe::cpu {

// What a worker does at a time: some tokens, and of their rows some bytes.
struct Chunk {
  int64_t first_token, last_token;
  int64_t first_byte, last_byte;
};

class Cut {
 public:
  // `bytes_per_token` is what a token moves on average, read and written.
  Cut(int64_t num_tokens, int64_t row_bytes, double bytes_per_token, int num_threads);

  // Threads that the work is worth.
  int num_workers() const { return num_workers_; }
  int64_t num_chunks() const { return token_ranges_ * parts_; }
  // Chunks cover every byte of every token once. Parts of a row begin at multiples of 512 bytes.
  Chunk operator[](int64_t chunk) const;

 private:
  int64_t num_tokens_, row_bytes_;
  int num_workers_;
  int64_t tokens_per_range_, token_ranges_;
  int64_t bytes_per_part_, parts_;
};

}  // namespace moe::cpu
