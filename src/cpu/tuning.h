// The CPU backend's numbers, with how each was found.
#pragma once

#include <cstdint>

namespace moe::cpu {

// Row addresses that a worker packs at a time, on its stack; so also the largest top_k of the SIMD
// kernels.
constexpr int64_t kMaxRows = 1024;
// Row bytes that a thread has in flight: what it asks for ahead of its reading.
constexpr int64_t kAheadBytes = 4096;
// Bytes of a row that are read before the next row has its turn.
constexpr int64_t kBlockBytes = 512;
// Row streams that a thread reads at once, at least, where there are so many.
constexpr int64_t kStreams = 8;
// Tokens that are read together at most, however few rows they have.
constexpr int64_t kMaxGroup = 16;
// Bytes that a worker moves before it takes the next chunk.
constexpr int64_t kChunkBytes = 512 << 10;
// Chunks for each worker at least, so that a slow one leaves its share to the others.
constexpr int64_t kChunksPerWorker = 4;
// Work below this many bytes is not worth waking another thread.
constexpr int64_t kWorkerBytes = 32 << 10;
// Parts of a row that different threads take have at least this many bytes.
constexpr int64_t kPartBytes = 2048;

}  // namespace moe::cpu
