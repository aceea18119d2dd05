#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/threads.h"

namespace moe {

void run_workers(int num_workers, WorkerFn body, void* context) {
  std::mutex mutex;
  std::exception_ptr error;
  auto guarded = [&](int worker) {
    try {
      body(context, worker);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  std::vector<std::jthread> threads;
  for (int worker = 1; worker < num_workers; ++worker) threads.emplace_back(guarded, worker);
  if (num_workers > 0) guarded(0);
  threads.clear();  // joins
  if (error) std::rethrow_exception(error);
}

int available_threads() { return static_cast<int>(std::thread::hardware_concurrency()); }

}  // namespace moe
