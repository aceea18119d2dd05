#include "run.h"

#include <cxxabi.h>
#include <unistd.h>

#include <cctype>
#include <string_view>

namespace moe::python {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Replaces `from` where it stands as a word.
void replace_word(std::string& message, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = message.find(from, at)) != std::string::npos;) {
    const size_t end = at + from.size();
    const bool is_whole =
        (at == 0 || !is_word(message[at - 1])) && (end == message.size() || !is_word(message[end]));
    if (is_whole) message.replace(at, from.size(), to);
    at += is_whole ? to.size() : 1;
  }
}

// The interpreter's lock, released for as long as this lives.
class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  ~Released() {
    try {
      PyEval_RestoreThread(state_);
    } catch (const abi::__forced_unwind&) {
      // The process ends, and Python before 3.14 ends threads that wait for the lock by unwinding
      // their stacks. C++ does not survive that: sleep until the end, as newer versions do.
      for (;;) pause();
    }
  }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace

void rethrow(const InvalidArgument& error, std::span<const Name> names) {
  std::string message = error.what();
  for (const Name& name : names) replace_word(message, name.library, name.python);
  throw nb::value_error(message.c_str());
}

void rethrow(const IndexError& error) { throw nb::index_error(error.what()); }

void run_released(const BoundCall& call) {
  const size_t num_bytes = call.workspace_bytes();
  // Not set to zero. Freed memory of this size stays with the allocator, its pages present.
  const std::unique_ptr<char[]> workspace(num_bytes ? new char[num_bytes] : nullptr);
  const Released released;
  call.run(workspace.get());
}

}  // namespace moe::python
