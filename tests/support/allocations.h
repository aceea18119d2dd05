// What a piece of code allocates. Linked into a program, this counts every call of malloc and its
// kin.
#pragma once

#include <cstddef>

namespace test {

// False where a sanitizer owns malloc: then nothing is counted.
bool counts_allocations();

void start_counting();
size_t stop_counting();  // bytes since the start

template <class Fn>
size_t allocated_by(Fn&& fn) {
  start_counting();
  fn();
  return stop_counting();
}

}  // namespace test
