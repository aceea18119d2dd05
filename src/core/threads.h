// The seam to the thread library. Two backends: threads_tbb.cc (oneTBB) and threads_std.cc
// (std::thread, for ThreadSanitizer, which cannot see through oneTBB).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace moe {

// Calls body(worker) once for each worker in [0, num_workers), on at most num_workers threads, the
// caller's among them, and returns when all are done. Workers share work through counters of their
// own (see parallel_chunks): no worker may wait for another, since they may run one after another.
// An exception of a body is thrown here, after all have ended.
using WorkerFn = void (*)(void* context, int worker);
void run_workers(int num_workers, WorkerFn body, void* context);

// Processors that this process may run on.
int available_threads();

// One worker runs as it is: a small call would read the engine's code from memory for nothing.
template <class Body>
void parallel_workers(int num_workers, Body&& body) {
  if (num_workers == 1) return body(0);
  using Plain = std::remove_reference_t<Body>;
  run_workers(
      num_workers, [](void* context, int worker) { (*static_cast<Plain*>(context))(worker); },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

// Chunks that nobody has taken yet of a worker's own share.
struct alignas(64) ChunkShare {
  std::atomic<int64_t> next;
  int64_t end;
};
constexpr int kMaxChunkShares = 64;

// Hands chunks to a worker, one at a time. Workers begin in shares of their own, so that what a
// processor reads and writes lies together and is likely the same the next time; and then help the
// others, so that a busy one takes fewer.
class ChunkTaker {
 public:
  ChunkTaker(ChunkShare* shares, int num_shares, int worker)
      : shares_(shares), num_shares_(num_shares), worker_(worker) {}

  // The next chunk that nobody has; false at the end.
  bool next(int64_t& chunk) {
    for (; shares_done_ < num_shares_; ++shares_done_) {
      ChunkShare& share = shares_[(worker_ + shares_done_) % num_shares_];
      chunk = share.next.fetch_add(1, std::memory_order_relaxed);
      if (chunk < share.end) return true;
    }
    return false;
  }

 private:
  ChunkShare* shares_;
  int num_shares_, worker_, shares_done_ = 0;
};

// Calls body(taker, worker) once for each worker, on at most num_workers threads; the workers'
// takers share the chunks [0, num_chunks).
template <class Body>
void parallel_takers(int64_t num_chunks, int num_workers, Body&& body) {
  const int workers = static_cast<int>(std::min<int64_t>(num_workers, num_chunks));
  const int num_shares = std::min(workers, kMaxChunkShares);
  ChunkShare shares[kMaxChunkShares];
  int64_t end = 0;
  for (int i = 0; i < num_shares; ++i) {
    shares[i].next.store(end, std::memory_order_relaxed);
    end += num_chunks / num_shares + (i < num_chunks % num_shares);
    shares[i].end = end;
  }
  parallel_workers(workers, [&](int worker) {
    ChunkTaker taker(shares, num_shares, worker);
    body(taker, worker);
  });
}

// Calls body(chunk, worker) once for each chunk in [0, num_chunks), on at most num_workers threads.
template <class Body>
void parallel_chunks(int64_t num_chunks, int num_workers, Body&& body) {
  parallel_takers(num_chunks, num_workers, [&](ChunkTaker& taker, int worker) {
    for (int64_t chunk; taker.next(chunk);) body(chunk, worker);
  });
}

}  // namespace moe
