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

void Progress::stage(const std::string& name) {
  const std::lock_guard lock(mutex_);
  stage_ = name;
}

void Progress::show(double seconds) {
  std::fprintf(stderr, "\r\033[K%s, %.0f s", stage_.c_str(), seconds);
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
