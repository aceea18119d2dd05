// Where in a case an element lies: which token, slot and row.
#pragma once

#include <string>

#include "cli/output.h"
#include "verify/suspect.h"

namespace moe::tools {

struct Place {
  std::string words;  // "token 3, slot 7 (k 1), row 12"
  Json facts;
};

// Of the element `flat` (row-major) of an output.
Place place_of(const Suspect& suspect, const StoredTensor& tensor, int64_t flat);

// An element as text, with digits enough to tell it from its neighbours.
std::string element_text(const StoredTensor& tensor, int64_t flat);

}  // namespace moe::tools
