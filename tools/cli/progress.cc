#include "cli/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace moe::tools {

Progress::Progress(bool wanted) {
  if (wanted && isatty(STDERR_FILENO)) thread_ = std::thread([this] { serve(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_one();
  thread_.join();
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::stage(const std::string& name, int64_t num_steps) {
  const std::lock_guard lock(mutex_);
  stage_ = name;
  num_steps_ = num_steps;
  done_ = 0;
}

void Progress::show(double seconds) {
  std::fprintf(stderr, "\r\033[K%s", stage_.c_str());
  if (num_steps_ > 0) {
    std::fprintf(stderr, " %.0f%%",
                 100.0 * static_cast<double>(done_) / static_cast<double>(num_steps_));
  }
  std::fprintf(stderr, ", %.0f s", seconds);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::serve() {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  std::unique_lock lock(mutex_);
  auto wait = std::chrono::milliseconds(1000);
  while (!ended_.wait_for(lock, wait, [this] { return end_; })) {
    show(std::chrono::duration<double>(Clock::now() - start).count());
    wait = std::chrono::milliseconds(200);
  }
}

}  // namespace moe::tools
