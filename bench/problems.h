// The operators that have cases to measure, by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "op_problem.h"

namespace moe::bench {

std::unique_ptr<OpProblem> permute_with_ep_problem(const Case& c, Memory& memory);
std::unique_ptr<OpProblem> permute_with_ep_grad_problem(const Case& c, Memory& memory);
std::unique_ptr<OpProblem> unpermute_with_ep_problem(const Case& c, Memory& memory);
std::unique_ptr<OpProblem> unpermute_with_ep_grad_problem(const Case& c, Memory& memory);

using MakeProblem = std::unique_ptr<OpProblem> (*)(const Case&, Memory&);

struct Op {
  std::string name;  // "permute_with_ep"
  MakeProblem make;
};

const std::vector<Op>& all_ops();
// Throws std::invalid_argument.
const Op& find_op(const std::string& name);

}  // namespace moe::bench
