// All verbs: each stands in the file of its name.
#pragma once

#include <memory>
#include <vector>

#include "cli/verb.h"
#include "operators/operator.h"

namespace moe::tools {

std::unique_ptr<Verb> operator_verb(const Operator& op);
std::unique_ptr<Verb> bench_verb();
std::unique_ptr<Verb> doctor_verb();
std::unique_ptr<Verb> explain_verb();
std::unique_ptr<Verb> gen_verb();
std::unique_ptr<Verb> plot_verb();
std::unique_ptr<Verb> tensors_verb();
std::unique_ptr<Verb> verify_verb();

// In the order that --help shows.
std::vector<std::unique_ptr<Verb>> all_verbs();

}  // namespace moe::tools
