// The floor: how fast this machine can move some bytes at all. It is the ruler that kernels are
// measured with, so its list of passes is frozen: a change here changes every figure ever
// published.
//
// A pass reads bytes and writes bytes over given buffers and computes nothing. Each worker takes an
// equal, contiguous share of both. It reads its share in 1, 4 or 8 streams (contiguous parts of the
// share, in turn), with or without software prefetch, and writes its output's bytes in proportion
// to what it has read, with streaming or ordinary stores. The floor of a case is the fastest pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace moe::bench {

// Bytes to read and bytes to write beside them; either may be none. `to` is aligned to 64 bytes.
struct Transfer {
  const std::byte* from = nullptr;
  int64_t bytes_read = 0;
  std::byte* to = nullptr;
  int64_t bytes_written = 0;
};

struct FloorPass {
  int num_streams;  // 1, 4 or 8
  bool prefetch;
  bool streaming_stores;

  std::string name() const;  // for instance "8 streams, prefetch, streaming"
};

// All twelve.
const std::vector<FloorPass>& floor_passes();

// Runs a pass over the transfers, one after another, on `num_workers` threads of the library's
// thread engine.
void run_floor_pass(const FloorPass& pass, std::span<const Transfer> transfers, int num_workers);

// Reads the bytes once, in 8 prefetched streams per worker: what a consumer does at its fastest.
void read_once(const std::byte* from, int64_t bytes, int num_workers);

}  // namespace moe::bench
