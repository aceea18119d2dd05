// All verbs: each stands in the file of its name.
#pragma once

#include <memory>
#include <vector>

#include "cli/verb.h"
#include "operators/operator.h"

namespace moe::tools {

std::unique_ptr<Verb> operator_verb(const Operator& op);

// In the order that --help shows.
std::vector<std::unique_ptr<Verb>> all_verbs();

}  // namespace moe::tools
