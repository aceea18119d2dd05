// How an operator's work is cut into chunks: a grid of token ranges and, where tokens are few,
// parts of their rows. Inline, so that it lies beside the operator that calls it: each page of code
// that a call finds cold costs it about half a microsecond.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/fp_mode.h"
#include "core/threads.h"
#include "cpu/tuning.h"

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
  // Whether no chunk is a part of a row.
  bool has_whole_rows() const { return parts_ == 1; }
  // Chunks cover every byte of every token once. Parts of a row begin at multiples of 512 bytes.
  Chunk operator[](int64_t chunk) const;

 private:
  static int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

  int64_t num_tokens_, row_bytes_;
  int num_workers_;
  int64_t tokens_per_range_, token_ranges_;
  int64_t bytes_per_part_, parts_;
};

inline Cut::Cut(int64_t num_tokens, int64_t row_bytes, double bytes_per_token, int num_threads)
    : num_tokens_(num_tokens), row_bytes_(row_bytes) {
  const FpMode mode;  // the caller's may trap
  const double bytes = bytes_per_token * static_cast<double>(num_tokens);
  num_workers_ = static_cast<int>(std::clamp(bytes / kWorkerBytes, 1.0, num_threads * 1.0));
  const double chunk_bytes =
      std::min(kChunkBytes * 1.0, bytes / static_cast<double>(num_workers_ * kChunksPerWorker));
  tokens_per_range_ = static_cast<int64_t>(std::clamp(chunk_bytes / bytes_per_token, 1.0, 1e9));
  token_ranges_ = divide_up(num_tokens, tokens_per_range_);

  const int64_t wanted = divide_up(num_workers_, std::max<int64_t>(1, token_ranges_));
  // One part is the row as it is: rounded up, the longest would leave 64 bits.
  bytes_per_part_ = std::max(
      kPartBytes, wanted == 1 ? row_bytes : divide_up(divide_up(row_bytes, wanted), 512) * 512);
  parts_ = std::max<int64_t>(1, divide_up(row_bytes, bytes_per_part_));
}

inline Chunk Cut::operator[](int64_t chunk) const {
  const int64_t token = chunk / parts_ * tokens_per_range_;
  const int64_t byte = chunk % parts_ * bytes_per_part_;
  return {token, token + std::min(tokens_per_range_, num_tokens_ - token), byte,
          byte + std::min(bytes_per_part_, row_bytes_ - byte)};
}

// The chunks of a cut that a worker takes, one after another.
class Chunks {
 public:
  Chunks(const Cut& cut, ChunkTaker& taker) : cut_(cut), taker_(taker) {}

  bool next(Chunk& chunk) {
    int64_t i;
    if (!taker_.next(i)) return false;
    chunk = cut_[i];
    return true;
  }
  bool have_whole_rows() const { return cut_.has_whole_rows(); }

 private:
  const Cut& cut_;
  ChunkTaker& taker_;
};

// The tokens of a chunk, some at a time; and where rows are whole, those of all further chunks of
// the worker, so that the next rows are on their way when a chunk ends.
class Tokens {
 public:
  Tokens(const Chunk& chunk, Chunks& more)
      : next_(chunk.first_token), end_(chunk.last_token), more_(more) {}

  // Whether there are any left.
  bool any() {
    Chunk chunk;
    if (next_ == end_ && more_.have_whole_rows() && more_.next(chunk)) {
      next_ = chunk.first_token, end_ = chunk.last_token;
    }
    return next_ < end_;
  }

  // The next ones, at most `most`, neighbours; some, if there are any.
  struct Range {
    int64_t first, count;
  };
  Range take(int64_t most) {
    const Range range{next_, std::min(most, end_ - next_)};
    next_ += range.count;
    return range;
  }

 private:
  int64_t next_, end_;
  Chunks& more_;
};

// Calls body(chunks) for each worker that the work is worth.
template <class Body>
void parallel_cut(const Cut& cut, Body&& body) {
  parallel_takers(cut.num_chunks(), cut.num_workers(), [&](ChunkTaker& taker, int) {
    Chunks chunks(cut, taker);
    body(chunks);
  });
}

}  // namespace moe::cpu
