// Wrong use, and the codes that the program ends with.
#pragma once

#include <stdexcept>

namespace moe::tools {

enum ExitCode : int {
  kOk = 0,
  kDifference = 1,   // verify: the results differ; doctor: something is unusable
  kWrongUse = 2,     // arguments, or tensors that do not fit each other
  kFileTrouble = 3,  // a file that cannot be read or written, or is not what its format asks for
  kOutOfMemory = 4,
  kBug = 5,  // an error that nobody expected
};

// Arguments or tensors that do not fit. One line that says what to do.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace moe::tools
