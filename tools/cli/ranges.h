// Checks of option values.
#pragma once

#include <CLI/CLI.hpp>

namespace moe::tools {

// From `low` to `high`; unlike CLI::Range by itself it does not repeat them in the help.
template <class T>
CLI::Validator between(T low, T high) {
  return CLI::Range(low, high).description("");
}

}  // namespace moe::tools
