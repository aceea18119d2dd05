// What a long run is at, on a terminal, from its first second on.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace moe::tools {

class Progress {
 public:
  // Silent for good unless standard error is a terminal and `wanted`.
  explicit Progress(bool wanted);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // What is being done from now on, and in how many steps; 0 where nobody knows.
  void stage(const std::string& name, int64_t num_steps = 0);
  void step() { done_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void show(double seconds);
  void serve();

  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false, shown_ = false;
  std::string stage_;
  int64_t num_steps_ = 0;
  std::atomic<int64_t> done_{0};
  std::thread thread_;
};

}  // namespace moe::tools
