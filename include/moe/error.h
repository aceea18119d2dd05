// What this library throws. Every message has the form "argument: what it got, what it needs", for
// instance "permuted_tokens_grad: 3 rows, but the range [1, 5) needs at least 4".
//
// std::bad_alloc may come out of any function besides. After any exception no output was changed.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "moe/export.h"

namespace moe {

// The root of all of them.
class MOE_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An argument that breaks the operator's contract. Thrown by plan() and bind().
class MOE_API InvalidArgument : public Error {
 public:
  // `argument` is the argument's name as the operator's header spells it; `problem` says what it
  // got and what it needs. what() is "argument: problem".
  InvalidArgument(const std::string& argument, const std::string& problem);
  const std::string& argument() const noexcept { return argument_; }

 private:
  std::string argument_;
};

// A pointer that has to be given and is null. Thrown by bind() and run().
class MOE_API NullArgument : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

// Index contents that break their contract, found by the checked mode while running.
class MOE_API IndexError : public Error {
 public:
  IndexError(const std::string& message, int64_t slot, int64_t value);
  int64_t slot() const noexcept { return slot_; }    // the first bad slot, t * top_k + k
  int64_t value() const noexcept { return value_; }  // what it holds

 private:
  int64_t slot_;
  int64_t value_;
};

}  // namespace moe
