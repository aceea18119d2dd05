// What the layer knows about an operator apart from its arithmetic: names.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "moe/error.h"

namespace moe::acl {

// A name in the core's messages and how the prototype spells it.
struct Word {
  std::string_view core;
  std::string_view prototype;
};

struct OpSpec {
  const char* name;                    // of the phase 2 function
  size_t num_inputs;                   // the first of `slots`
  std::span<const char* const> slots;  // tensors: inputs, then outputs, in the prototype's order
  std::span<const Word> words;
};

// `message` with every whole word of `words` as the prototype spells it: who calls the C API knows
// no other names.
std::string translated(std::string_view message, std::span<const Word> words);

// Inside a catch block for moe::Error: throws a Failure with the error's code and the message
// translated.
[[noreturn]] void rethrow_translated(const OpSpec& op);

template <class Body>
void with_prototype_names(const OpSpec& op, Body&& body) {
  try {
    body();
  } catch (const Error&) {
    rethrow_translated(op);
  }
}

}  // namespace moe::acl
