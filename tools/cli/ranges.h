// Checks of option values.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <type_traits>

#include "files/text.h"

namespace moe::tools {

// A plain decimal number from `low` to `high`: CLI11 by itself takes -1 for an unsigned one, cuts
// what is too large, and lets NaN pass as in range.
template <class T>
CLI::Validator between(T low, T high) {
  const auto check = [low, high](const std::string& given) {
    T value{};
    const char* end = given.data() + given.size();
    const auto [rest, error] = std::from_chars(given.data(), end, value);
    if (error == std::errc() && rest == end && value >= low && value <= high) return std::string();
    return text(quoted(given), ", but needs a ", std::is_integral_v<T> ? "whole " : "",
                "number from ", low, " to ", high);
  };
  return {check, ""};
}

}  // namespace moe::tools
