// The seam to the thread library. Two backends: threads_tbb.cc (oneTBB) and threads_std.cc
// (std::thread, for ThreadSanitizer, which cannot see through oneTBB).
#pragma once

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

template <class Body>
void parallel_workers(int num_workers, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  run_workers(
      num_workers, [](void* context, int worker) { (*static_cast<Plain*>(context))(worker); },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

}  // namespace moe
