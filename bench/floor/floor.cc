#include "floor/floor.h"

#include <algorithm>
#include <cstring>

#include "core/threads.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace moe::bench {
namespace {

// 16 bytes at a time: every x86-64 and every Armv8 has them, and from the second-level cache on
// wider registers move no more.
using Vec = uint64_t __attribute__((vector_size(16)));
constexpr int64_t kLine = 64;
// Bytes of each stream in turn, and how far ahead a stream is prefetched: the best of 64 to 512 and
// of 256 to 2048 bytes on an AMD EPYC 7003, and good within a tenth where another one won.
constexpr int64_t kBlock = 64;
constexpr int64_t kPrefetchAhead = 512;

Vec load(const std::byte* from) {
  Vec value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <bool kStreaming>
void store_line(std::byte* to, Vec value) {
  for (int64_t i = 0; i < kLine; i += sizeof value) {
#if defined(__SSE2__)
    if constexpr (kStreaming) {
      __m128i bits;
      std::memcpy(&bits, &value, sizeof bits);
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), bits);
      continue;
    }
#elif defined(__clang__)
    if constexpr (kStreaming) {
      __builtin_nontemporal_store(value, reinterpret_cast<Vec*>(to + i));
      continue;
    }
#endif
    std::memcpy(to + i, &value, sizeof value);
  }
}

// A worker's share of one transfer: part `worker` of `num_workers`, cut at whole lines.
Transfer share_of(const Transfer& all, int worker, int num_workers) {
  const auto cut = [&](int64_t bytes, int64_t part) {
    return part == num_workers ? bytes : bytes / kLine * part / num_workers * kLine;
  };
  const int64_t read = cut(all.bytes_read, worker), written = cut(all.bytes_written, worker);
  return {all.from + read, cut(all.bytes_read, worker + 1) - read, all.to + written,
          cut(all.bytes_written, worker + 1) - written};
}

template <bool kPrefetch>
Vec read_block(const std::byte* from, Vec sum) {
  Vec sums[4] = {sum, {}, {}, {}};
  if constexpr (kPrefetch) __builtin_prefetch(from + kPrefetchAhead);
  for (int i = 0; i < 4; ++i) sums[i] ^= load(from + i * 16);
  return (sums[0] ^ sums[1]) ^ (sums[2] ^ sums[3]);
}

Vec read_rest(const std::byte* from, int64_t bytes, Vec sum) {
  for (; bytes >= 16; bytes -= 16, from += 16) sum ^= load(from);
  for (int64_t i = 0; i < bytes; ++i) sum[0] ^= static_cast<uint64_t>(from[i]);
  return sum;
}

// Writes whole lines until `written` has reached `target`.
template <bool kStreaming>
int64_t write_lines(std::byte* to, int64_t written, int64_t target, Vec value) {
  for (; written + kLine <= target; written += kLine) store_line<kStreaming>(to + written, value);
  return written;
}

// Not to be inlined: each pass stands alone, as a kernel does.
template <int kStreams, bool kPrefetch, bool kStreaming>
[[gnu::noinline]] void move(const Transfer& t) {
  const int64_t num_blocks = t.bytes_read / kStreams / kBlock;  // of each stream
  const int64_t stream_bytes = num_blocks * kBlock;
  // Lines to write per block, in 1/2^16 lines, so that the loop has no division.
  const int64_t lines = t.bytes_written / kLine;
  const int64_t step = num_blocks > 0 ? (lines << 16) / num_blocks : 0;
  Vec sum{};
  int64_t written = 0;
  for (int64_t block = 0; block < num_blocks; ++block) {
    for (int stream = 0; stream < kStreams; ++stream) {
      sum = read_block<kPrefetch>(t.from + stream * stream_bytes + block * kBlock, sum);
    }
    written = write_lines<kStreaming>(t.to, written, ((block + 1) * step >> 16) * kLine, sum);
  }
  const int64_t read = stream_bytes * kStreams;
  sum = read_rest(t.from + read, t.bytes_read - read, sum);
  written = write_lines<kStreaming>(t.to, written, t.bytes_written, sum);
  std::memset(t.to + written, static_cast<int>(sum[0]),
              static_cast<size_t>(t.bytes_written - written));
#if defined(__SSE2__)
  if constexpr (kStreaming) _mm_sfence();
#endif
  asm volatile("" ::"m"(sum) : "memory");  // the sum counts as used
}

using Move = void (*)(const Transfer&);

template <int kStreams>
Move move_of(bool prefetch, bool streaming) {
  if (prefetch) return streaming ? move<kStreams, true, true> : move<kStreams, true, false>;
  return streaming ? move<kStreams, false, true> : move<kStreams, false, false>;
}

Move move_of(const FloorPass& pass) {
  switch (pass.num_streams) {
    case 1:
      return move_of<1>(pass.prefetch, pass.streaming_stores);
    case 4:
      return move_of<4>(pass.prefetch, pass.streaming_stores);
    default:
      return move_of<8>(pass.prefetch, pass.streaming_stores);
  }
}

}  // namespace

std::string FloorPass::name() const {
  return std::to_string(num_streams) + (num_streams == 1 ? " stream, " : " streams, ") +
         (prefetch ? "prefetch, " : "no prefetch, ") +
         (streaming_stores ? "streaming" : "ordinary");
}

const std::vector<FloorPass>& floor_passes() {
  static const std::vector<FloorPass> passes = [] {
    std::vector<FloorPass> list;
    for (int streams : {1, 4, 8}) {
      for (bool prefetch : {false, true}) {
        for (bool streaming : {false, true}) list.push_back({streams, prefetch, streaming});
      }
    }
    return list;
  }();
  return passes;
}

void run_floor_pass(const FloorPass& pass, std::span<const Transfer> transfers, int num_workers) {
  const Move move_share = move_of(pass);
  parallel_workers(num_workers, [&](int worker) {
    for (const Transfer& t : transfers) move_share(share_of(t, worker, num_workers));
  });
}

void read_once(const std::byte* from, int64_t bytes, int num_workers) {
  const Transfer transfer{from, bytes, nullptr, 0};
  run_floor_pass({8, true, false}, {&transfer, 1}, num_workers);
}

}  // namespace moe::bench
