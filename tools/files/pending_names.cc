#include "files/pending_names.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "files/file_error.h"
#include "files/pending_file.h"

namespace moe::tools {
namespace {

constexpr size_t kMost = 1024;
std::array<std::atomic<char*>, kMost> g_names{};

// Latest first: a folder's files before the folder.
void remove_all() {
  for (auto name = g_names.rbegin(); name != g_names.rend(); ++name) {
    const char* path = name->load();
    if (path && unlink(path) != 0) rmdir(path);
  }
}

void on_end(int signal) {
  remove_all();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void on_bus_error(int) {
  static constexpr char kMessage[] =
      "error: a file was cut short, or its disk failed, while it was in use: run this again when "
      "nobody writes to it\n";
  remove_all();
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  _exit(3);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;  // nohup
  action = {};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

}  // namespace

size_t register_pending(const std::string& path) {
  char* name = strdup(path.c_str());
  for (size_t slot = 0; slot < kMost; ++slot) {
    char* free_slot = nullptr;
    if (name && g_names[slot].compare_exchange_strong(free_slot, name)) return slot;
  }
  std::free(name);
  throw FileError(path, "more than 1024 files at once: write one .safetensors file instead");
}

void release_pending(size_t slot) noexcept { std::free(g_names[slot].exchange(nullptr)); }

void remove_pending_files_on_signals() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) handle(signal, on_end);
  handle(SIGBUS, on_bus_error);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace moe::tools
