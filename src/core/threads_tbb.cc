#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "core/threads.h"

namespace moe {

void run_workers(int num_workers, WorkerFn body, void* context) {
  // Isolated: a thread that waits here must not pick up a stranger's task in the meantime.
  tbb::this_task_arena::isolate([&] {
    tbb::parallel_for(
        0, num_workers, [&](int worker) { body(context, worker); }, tbb::simple_partitioner{});
  });
}

int available_threads() { return tbb::this_task_arena::max_concurrency(); }

}  // namespace moe
