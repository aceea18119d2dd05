// A program that does what only a process of its own can: it faults, runs out of mappings, or exits
// with work left. usage: acl_runtime_program CASE; says what it saw on stdout.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "acl/acl.h"

namespace {

[[noreturn]] void give_up(const char* what) {
  std::printf("failed: %s\n", what);
  std::exit(99);
}
void require(bool good, const char* what) {
  if (!good) give_up(what);
}

// Prints one result with its message.
void say(const char* what, aclError code) {
  const char* message = aclGetRecentErrMsg();
  std::printf("%s: %d %s\n", what, code, message == nullptr ? "-" : message);
  std::fflush(stdout);
}

volatile char* allocate(size_t size) {
  void* block = nullptr;
  require(aclrtMalloc(&block, size, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS, "aclrtMalloc");
  return static_cast<volatile char*>(block);
}
void* plain(volatile char* block) { return const_cast<char*>(block); }

void hold(aclrtStream stream) {
  const auto self = static_cast<uint64_t>(pthread_self());
  require(aclrtSubscribeReport(self, stream) == ACL_SUCCESS, "subscribe");
  require(aclrtLaunchCallback([](void*) {}, nullptr, ACL_CALLBACK_BLOCK, stream) == ACL_SUCCESS,
          "launch");
}

void write_past_the_slack() { allocate(96)[128] = 1; }
void write_past_the_end() { allocate(96)[96] = 1; }
void write_before_the_start() { allocate(4096)[-1] = 1; }

void read_after_free() {
  volatile char* const block = allocate(96);
  block[5] = 1;
  require(aclrtFree(plain(block)) == ACL_SUCCESS, "aclrtFree");
  std::printf("read %d\n", block[5]);
}

void read_after_a_pinned_free() {
  volatile char* const from = allocate(96);
  volatile char* const to = allocate(96);
  from[5] = 6;
  aclrtStream stream = nullptr;
  require(aclrtCreateStream(&stream) == ACL_SUCCESS, "stream");
  hold(stream);
  require(aclrtMemcpyAsync(plain(to), 96, plain(from), 96, ACL_MEMCPY_DEVICE_TO_DEVICE, stream) ==
              ACL_SUCCESS,
          "copy");
  require(aclrtFree(plain(from)) == ACL_SUCCESS, "aclrtFree");
  require(aclrtProcessReport(-1) == ACL_SUCCESS, "report");
  say("synchronize", aclrtSynchronizeStream(stream));
  std::printf("copied %d\n", to[5]);
  std::fflush(stdout);
  std::printf("read %d\n", from[5]);
}

void write_into_the_slack() {
  volatile char* const freed = allocate(100);
  freed[100] = 1;
  freed[102] = 1;
  say("free", aclrtFree(plain(freed)));
  say("free again", aclrtFree(plain(freed)));

  volatile char* const copied = allocate(100);
  char host[4] = {7, 7, 7, 7};
  copied[127] = 1;
  say("copy", aclrtMemcpy(plain(copied), 100, host, 4, ACL_MEMCPY_HOST_TO_DEVICE));
  say("copy again", aclrtMemcpy(plain(copied), 100, host, 4, ACL_MEMCPY_HOST_TO_DEVICE));
  copied[-1] = 1;
  say("synchronize", aclrtSynchronizeStream(nullptr));
  say("synchronize again", aclrtSynchronizeStream(nullptr));
  copied[110] = 1;
  say("device", aclrtSynchronizeDevice());
  copied[111] = 1;
  aclrtEvent event = nullptr;
  require(aclrtCreateEvent(&event) == ACL_SUCCESS, "aclrtCreateEvent");
  require(aclrtRecordEvent(event, nullptr) == ACL_SUCCESS, "aclrtRecordEvent");
  say("event", aclrtSynchronizeEvent(event));
  require(aclrtDestroyEvent(event) == ACL_SUCCESS, "aclrtDestroyEvent");
  say("free", aclrtFree(plain(copied)));
}

void fault_elsewhere() {
  allocate(64);
  const long page = sysconf(_SC_PAGESIZE);
  void* const own =
      mmap(nullptr, static_cast<size_t>(page), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<volatile char*>(own) = 1;
}

void fault_with_a_handler_of_its_own() {
  struct sigaction own = {};
  own.sa_handler = [](int) {
    constexpr char kText[] = "the program's handler\n";
    if (write(STDOUT_FILENO, kText, sizeof(kText) - 1) < 0) _exit(98);
    _exit(7);
  };
  require(sigaction(SIGSEGV, &own, nullptr) == 0, "sigaction");
  write_past_the_slack();
}

// Uses up the process's mappings, without memory: every other page of one of them protected.
void run_out_of_mappings() {
  volatile char* const before = allocate(64);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  constexpr size_t kPages = size_t{1} << 23;
  void* const area =
      mmap(nullptr, kPages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(area != MAP_FAILED, "mmap");
  size_t index = 1;
  while (index < kPages &&
         mprotect(static_cast<char*>(area) + index * page, page, PROT_READ) == 0) {
    index += 2;
  }
  if (index >= kPages) {
    std::printf("no limit of mappings here\n");
    return;
  }
  for (int i = 0; i < 2; ++i) {
    volatile char* const block = allocate(100);
    say("malloc", ACL_SUCCESS);
    std::memset(plain(block), 1, 100);
    say("free", aclrtFree(plain(block)));
  }
  munmap(area, kPages * page);
  say("free", aclrtFree(plain(before)));
  allocate(96)[128] = 1;
}

// A program that forgets to wait: its work waits for a callback that nobody runs.
void exit_with_work_left() {
  static std::vector<char> result(4);
  aclrtStream stream = nullptr;
  require(aclrtCreateStream(&stream) == ACL_SUCCESS, "stream");
  hold(stream);
  volatile char* const block = allocate(4);
  aclrtEvent event = nullptr;
  require(aclrtCreateEvent(&event) == ACL_SUCCESS, "event");
  aclrtMemcpyAsync(result.data(), 4, plain(block), 4, ACL_MEMCPY_DEVICE_TO_HOST, stream);
  aclrtRecordEvent(event, stream);
  aclrtStreamWaitEvent(nullptr, event);
  std::printf("leaving\n");
}

// Objects with static storage release what they hold after main has returned.
struct Holder {
  volatile char* block = nullptr;
  aclrtStream stream = nullptr;
  ~Holder() {
    if (block == nullptr) return;
    say("synchronize at exit", aclrtSynchronizeStream(stream));
    say("destroy at exit", aclrtDestroyStream(stream));
    say("free at exit", aclrtFree(plain(block)));
    say("free twice at exit", aclrtFree(plain(block)));
    say("reset at exit", aclrtResetDevice(0));
  }
};
Holder holder;

void release_in_static_destructors() {
  holder.block = allocate(4);
  require(aclrtCreateStream(&holder.stream) == ACL_SUCCESS, "stream");
  require(aclrtMemsetAsync(plain(holder.block), 4, 1, 4, holder.stream) == ACL_SUCCESS, "memset");
  require(aclrtSynchronizeStream(holder.stream) == ACL_SUCCESS, "synchronize");
}

void use_host_memory() {
  char a[4] = {};
  char b[4] = {1, 2, 3, 4};
  say("copy", aclrtMemcpy(a, 4, b, 4, ACL_MEMCPY_DEVICE_TO_DEVICE));
  std::printf("copied %d\n", a[3]);
}

const std::map<std::string, void (*)()> kCases = {
    {"write_past_the_slack", write_past_the_slack},
    {"write_past_the_end", write_past_the_end},
    {"write_before_the_start", write_before_the_start},
    {"read_after_free", read_after_free},
    {"read_after_a_pinned_free", read_after_a_pinned_free},
    {"write_into_the_slack", write_into_the_slack},
    {"fault_elsewhere", fault_elsewhere},
    {"fault_with_a_handler_of_its_own", fault_with_a_handler_of_its_own},
    {"run_out_of_mappings", run_out_of_mappings},
    {"exit_with_work_left", exit_with_work_left},
    {"release_in_static_destructors", release_in_static_destructors},
    {"use_host_memory", use_host_memory},
};

}  // namespace

int main(int argc, char** argv) {
  const auto found = argc == 2 ? kCases.find(argv[1]) : kCases.end();
  if (found == kCases.end()) give_up("unknown case");
  const aclError init = aclInit(nullptr);
  if (init != ACL_SUCCESS) {
    say("init", init);
    say("device", aclrtSetDevice(0));
    return 0;
  }
  require(aclrtSetDevice(0) == ACL_SUCCESS, "aclrtSetDevice");
  found->second();
  return 0;
}
