// How the library is called: its exceptions turned into Python's, the lock of the interpreter
// released while it runs.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <span>
#include <string>

#include "errors.h"
#include "moe/engine.h"
#include "moe/error.h"

namespace moe::python {

// The library's name of an argument, and Python's where that differs.
struct Name {
  const char* library;
  const char* python;
};

// The exception that Python sees.
[[noreturn]] void rethrow(const InvalidArgument& error, std::span<const Name> names);
[[noreturn]] void rethrow(const IndexError& error);

// fn(), its errors in Python's words.
template <class Fn>
auto in_python_words(std::span<const Name> names, Fn&& fn) {
  try {
    return fn();
  } catch (const InvalidArgument& error) {
    rethrow(error, names);
  } catch (const IndexError& error) {
    rethrow(error);
  }
}

void run_released(const BoundCall& call);

}  // namespace moe::python
