// What a long run is at, on a terminal, from its first second on.
#pragma once

#include <condition_variable>
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

  // What is being done from now on.
  void stage(const std::string& name);

 private:
  void show(double seconds);
  void serve();

  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false, shown_ = false;
  std::string stage_;
  std::thread thread_;
};

}  // namespace moe::tools
