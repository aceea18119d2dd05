// The floor's passes, for registers of the type Vec. Included by one file for each instruction set,
// and in an unnamed namespace: each file has its own, compiled with its own flags.
#pragma once

#include <cstring>

#include "floor/passes.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace moe::bench::passes {

inline constexpr int64_t kLine = 64;
// How far ahead a stream is prefetched: the best of 128 to 2048 bytes on an AMD EPYC 7003, and
// within a few hundredths where another one won. (Streams take turns line by line: blocks of 128 to
// 512 bytes were slower.)
inline constexpr int64_t kPrefetchAhead = 256;

template <class Vec>
Vec load(const std::byte* from) {
  Vec value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <bool kStreaming, class Vec>
void store(std::byte* to, Vec value) {
#if defined(__AVX__)
  if constexpr (kStreaming && sizeof value == 32) {
    return _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(value));
  }
#endif
#if defined(__SSE2__)
  if constexpr (kStreaming && sizeof value == 16) {
    return _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<__m128i>(value));
  }
#elif defined(__clang__)
  if constexpr (kStreaming) {
    return __builtin_nontemporal_store(value, reinterpret_cast<Vec*>(to));
  }
#endif
  std::memcpy(to, &value, sizeof value);
}

template <bool kPrefetch, class Vec>
Vec read_line(const std::byte* from, Vec sum) {
  constexpr int kNumVecs = static_cast<int>(kLine / sizeof(Vec));
  Vec sums[kNumVecs] = {sum};
  if constexpr (kPrefetch) __builtin_prefetch(from + kPrefetchAhead);
  for (int i = 0; i < kNumVecs; ++i) sums[i] ^= load<Vec>(from + i * sizeof(Vec));
  for (int i = 1; i < kNumVecs; ++i) sums[0] ^= sums[i];
  return sums[0];
}

template <class Vec>
Vec read_rest(const std::byte* from, int64_t bytes, Vec sum) {
  constexpr int64_t kVecBytes = sizeof(Vec);
  for (; bytes >= kVecBytes; bytes -= kVecBytes, from += kVecBytes) sum ^= load<Vec>(from);
  for (int64_t i = 0; i < bytes; ++i) sum[0] ^= static_cast<uint64_t>(from[i]);
  return sum;
}

// Writes whole lines until `written` has reached `target`.
template <bool kStreaming, class Vec>
int64_t write_lines(std::byte* to, int64_t written, int64_t target, Vec value) {
  for (; written + kLine <= target; written += kLine) {
    for (int64_t i = 0; i < kLine; i += sizeof(Vec)) store<kStreaming>(to + written + i, value);
  }
  return written;
}

template <class Vec, int kStreams, bool kPrefetch, bool kStreaming>
void move(const Transfer& t) {
  const int64_t num_lines = t.bytes_read / kStreams / kLine;  // of each stream
  const int64_t stream_bytes = num_lines * kLine;
  // Lines to write for each round of the streams, in 1/2^16 lines, so that the loop has no
  // division.
  const int64_t step = num_lines > 0 ? (t.bytes_written / kLine << 16) / num_lines : 0;
  Vec sum{};
  int64_t written = 0;
  for (int64_t line = 0; line < num_lines; ++line) {
    for (int stream = 0; stream < kStreams; ++stream) {
      sum = read_line<kPrefetch>(t.from + stream * stream_bytes + line * kLine, sum);
    }
    written = write_lines<kStreaming>(t.to, written, ((line + 1) * step >> 16) * kLine, sum);
  }
  const int64_t read = stream_bytes * kStreams;
  sum = read_rest(t.from + read, t.bytes_read - read, sum);
  written = write_lines<kStreaming>(t.to, written, t.bytes_written, sum);
  const int64_t rest = t.bytes_written - written;
  if (rest > 0) std::memset(t.to + written, static_cast<int>(sum[0]), static_cast<size_t>(rest));
#if defined(__SSE2__)
  if constexpr (kStreaming) _mm_sfence();
#endif
  asm volatile("" ::"m"(sum) : "memory");  // the sum counts as used
}

template <class Vec, int kStreams>
Move move_of(bool prefetch, bool streaming) {
  if (prefetch) {
    return streaming ? move<Vec, kStreams, true, true> : move<Vec, kStreams, true, false>;
  }
  return streaming ? move<Vec, kStreams, false, true> : move<Vec, kStreams, false, false>;
}

template <class Vec>
Move move_of(const FloorPass& pass) {
  switch (pass.num_streams) {
    case 1:
      return move_of<Vec, 1>(pass.prefetch, pass.streaming_stores);
    case 4:
      return move_of<Vec, 4>(pass.prefetch, pass.streaming_stores);
    default:
      return move_of<Vec, 8>(pass.prefetch, pass.streaming_stores);
  }
}

}  // namespace moe::bench::passes
