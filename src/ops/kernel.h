// What every operator shares between its check and its kernels: an ordered list of kernels, fastest
// first, that src/backends.cc fills, and whose last one takes everything.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/environment.h"
#include "core/text.h"
#include "moe/engine.h"
#include "moe/error.h"

namespace moe {

// A kernel of the operator with this Problem (shapes, strides, dtypes, threads) and these Pointers
// (addresses of first elements).
template <class Problem, class Pointers>
struct Kernel {
  std::string name;
  // Why the kernel cannot take the problem; empty when it can.
  std::string (*refuses)(const Problem&);
  size_t (*workspace_bytes)(const Problem&);
  // The call for these addresses. What can be decided before it runs is decided here.
  std::function<std::shared_ptr<const Call>(const Problem&, const Pointers&,
                                            size_t workspace_bytes)>
      bind;
  // Whether a later kernel that takes the problem, too, is faster, so that this one runs only where
  // it is forced; null: never.
  bool (*is_slower)(const Problem&) = nullptr;

  bool yields(const Problem& problem) const { return is_slower && is_slower(problem); }
};

template <class Problem, class Pointers>
using KernelList = std::vector<Kernel<Problem, Pointers>>;

template <class Problem, class Pointers>
std::vector<std::string> names_of(const KernelList<Problem, Pointers>& kernels) {
  std::vector<std::string> names;
  for (const auto& kernel : kernels) names.push_back(kernel.name);
  return names;
}

// The first kernel that takes the problem and does not yield, or the one that the engine or the
// environment forces.
template <class Problem, class Pointers>
const Kernel<Problem, Pointers>& choose(const KernelList<Problem, Pointers>& kernels,
                                        const Problem& problem, const Engine& engine) {
  const std::string& forced = engine.kernel.empty() ? forced_kernel() : engine.kernel;
  for (const auto& kernel : kernels) {
    if (!forced.empty() && forced != kernel.name) continue;
    if (forced.empty() && kernel.yields(problem)) continue;
    const std::string reason = kernel.refuses(problem);
    if (reason.empty()) return kernel;
    if (!forced.empty()) {
      throw InvalidArgument("kernel", text("\"", forced, "\" does not take this case: ", reason));
    }
  }
  std::string known;
  for (const auto& kernel : kernels) known += text(known.empty() ? "" : ", ", kernel.name);
  throw InvalidArgument("kernel", text("\"", forced, "\", but this machine has ", known));
}

// A line for each kernel: what it says of the problem.
template <class Problem, class Pointers>
std::string explain(const KernelList<Problem, Pointers>& kernels, const Problem& problem) {
  std::string lines;
  for (const auto& kernel : kernels) {
    const std::string reason = kernel.refuses(problem);
    const char* const taken =
        kernel.yields(problem) ? "leaves it to a later one, which is faster here" : "takes it";
    lines += text(kernel.name, ": ", reason.empty() ? taken : reason, "\n");
  }
  return lines;
}

// What a plan consists of; an operator's State derives from it.
template <class Arguments, class Problem_, class Pointers_>
struct PlanState {
  using Problem = Problem_;
  using Pointers = Pointers_;

  Arguments args;
  Problem problem;
  const Kernel<Problem, Pointers>* kernel;
  size_t workspace_bytes;
};

// The plan of arguments that passed every check, and of the problem that they make.
template <class State, class Arguments, class Problem, class Pointers>
std::shared_ptr<const State> make_plan(const Arguments& args, const Problem& problem,
                                       const KernelList<Problem, Pointers>& kernels,
                                       const Engine& engine) {
  auto state = std::make_shared<State>();
  state->args = args;
  state->problem = problem;
  state->kernel = &choose(kernels, problem, engine);
  state->workspace_bytes = state->kernel->workspace_bytes(problem);
  return state;
}

// A call of a kernel that decides everything when it runs.
template <class Problem, class Pointers>
class ProblemCall final : public Call {
 public:
  using RunProblem = void(const Problem&, const Pointers&, void* workspace);

  ProblemCall(RunProblem* how, size_t workspace_bytes, const Problem& problem,
              const Pointers& pointers)
      : Call(run, workspace_bytes), run_problem_(how), pointers_(pointers), problem_(problem) {}

 private:
  static void run(const Call& call, void* workspace) {
    const auto& self = static_cast<const ProblemCall&>(call);
    self.run_problem_(self.problem_, self.pointers_, workspace);
  }

  RunProblem* run_problem_;
  Pointers pointers_;
  Problem problem_;
};

// How such a kernel binds.
template <class Problem, class Pointers>
auto bound_to(typename ProblemCall<Problem, Pointers>::RunProblem* run) {
  return [run](const Problem& problem, const Pointers& pointers, size_t workspace_bytes) {
    return std::make_shared<ProblemCall<Problem, Pointers>>(run, workspace_bytes, problem,
                                                            pointers);
  };
}

// The plan with the addresses of first elements.
template <class State>
BoundCall bound_call(const State& plan, const typename State::Pointers& first) {
  return BoundCall(plan.kernel->bind(plan.problem, first, plan.workspace_bytes));
}

}  // namespace moe
