// The fault handler of guard mode. What runs in it is async-signal-safe: no lock, no allocation.
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "acl/runtime/guard.h"

namespace moe::acl {
namespace {

std::atomic<GuardRecord*> records{nullptr};
struct sigaction previous_segv;
struct sigaction previous_bus;

// One line, written at once so that two threads' lines do not mix.
class Line {
 public:
  Line& operator<<(const char* part) {
    while (*part != '\0') put(*part++);
    return *this;
  }
  Line& operator<<(size_t number) {
    char digits[20];
    int count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    while (count > 0) put(digits[--count]);
    return *this;
  }
  Line& address(uintptr_t value) {
    *this << "0x";
    for (int shift = 44; shift >= 0; shift -= 4) put("0123456789abcdef"[(value >> shift) & 15]);
    return *this;
  }
  void write_out() {
    put('\n');
    // Nothing sensible is left to do when even this fails.
    [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, text_, length_);
  }

 private:
  void put(char c) {
    if (length_ < sizeof(text_)) text_[length_++] = c;
  }
  char text_[320];
  size_t length_ = 0;
};

const GuardRecord* record_at(uintptr_t address) {
  for (const GuardRecord* record = records.load(); record != nullptr; record = record->next) {
    if (record->reserved_begin <= address && address < record->reserved_end) return record;
  }
  return nullptr;
}

void describe(const GuardRecord& record, uintptr_t address) {
  Line line;
  line << "MOE_ACL_GUARD: the access to ";
  line.address(address) << " is ";
  if (address >= record.end) {
    line << address - record.end + 1 << " bytes past the end of";
  } else if (address < record.begin) {
    line << record.begin - address << " bytes before the start of";
  } else {
    line << "at offset " << address - record.begin << " of";
  }
  line << " the block of " << record.end - record.begin << " bytes at ";
  line.address(record.begin);
  if (record.freed) line << ", which is freed";
  line.write_out();
  (Line() << "MOE_ACL_GUARD: the block was allocated by").write_out();
  backtrace_symbols_fd(record.frames, record.num_frames, STDERR_FILENO);
}

// Back to the handler before ours. A default one gets the signal by running into the fault again.
void chain(int signal, siginfo_t* info, void* context) {
  const struct sigaction& previous = signal == SIGBUS ? previous_bus : previous_segv;
  if ((previous.sa_flags & SA_SIGINFO) != 0) return previous.sa_sigaction(signal, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    return previous.sa_handler(signal);
  }
  const bool sent_by_a_process = info->si_code <= 0;
  if (sent_by_a_process && previous.sa_handler == SIG_IGN) return;
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  sigaction(signal, &by_default, nullptr);
  if (sent_by_a_process) raise(signal);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (info->si_code > 0) {
    if (const GuardRecord* record = record_at(address)) describe(*record, address);
  }
  errno = saved_errno;
  chain(signal, info, context);
}

}  // namespace

void publish(GuardRecord* record) {
  record->next = records.load();
  while (!records.compare_exchange_weak(record->next, record)) {
  }
}

void install_fault_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction ours = {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    sigaction(SIGSEGV, &ours, &previous_segv);
    sigaction(SIGBUS, &ours, &previous_bus);
  });
}

}  // namespace moe::acl
