// Enumerators of the C API as numbers. Programs pass any number for one, and a value that the type
// cannot hold must be neither read nor written as the type.
#pragma once

#include <cstring>

namespace moe::acl {

template <class Enum>
int number_of(const Enum& enumerator) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &enumerator, sizeof(number));
  return number;
}

template <class Enum>
void set_number(Enum* enumerator, int number) {
  static_assert(sizeof(Enum) == sizeof(int));
  std::memcpy(enumerator, &number, sizeof(number));
}

}  // namespace moe::acl
