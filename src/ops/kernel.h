// What every operator shares between its check and its kernels: an ordered list of kernels, fastest
// first, that src/backends.cc fills, and whose last one takes everything.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
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
  void (*run)(const Problem&, const Pointers&, void* workspace);
};

template <class Problem, class Pointers>
using KernelList = std::vector<Kernel<Problem, Pointers>>;

template <class Problem, class Pointers>
std::vector<std::string> names_of(const KernelList<Problem, Pointers>& kernels) {
  std::vector<std::string> names;
  for (const auto& kernel : kernels) names.push_back(kernel.name);
  return names;
}

// The first kernel that takes the problem, or the one that the engine or the environment forces.
template <class Problem, class Pointers>
const Kernel<Problem, Pointers>& choose(const KernelList<Problem, Pointers>& kernels,
                                        const Problem& problem, const Engine& engine) {
  const std::string& forced = engine.kernel.empty() ? forced_kernel() : engine.kernel;
  for (const auto& kernel : kernels) {
    if (!forced.empty() && forced != kernel.name) continue;
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
    lines += text(kernel.name, ": ", reason.empty() ? "takes it" : reason, "\n");
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

// What a bound call consists of: all that a run reads lies together, because a run often finds
// nothing of it in the caches.
template <class Problem, class Pointers>
class KernelCall final : public Call {
 public:
  KernelCall(const Kernel<Problem, Pointers>& kernel, size_t workspace_bytes,
             const Problem& problem, const Pointers& pointers)
      : Call(workspace_bytes), run_(kernel.run), pointers_(pointers), problem_(problem) {}

  void run(void* workspace) const override { run_(problem_, pointers_, workspace); }

 private:
  decltype(Kernel<Problem, Pointers>::run) run_;
  Pointers pointers_;
  Problem problem_;
};

// The plan with the addresses of first elements.
template <class State>
BoundCall bound_call(const State& plan, const typename State::Pointers& first) {
  using Bound = KernelCall<typename State::Problem, typename State::Pointers>;
  return BoundCall(
      std::make_shared<Bound>(*plan.kernel, plan.workspace_bytes, plan.problem, first));
}

}  // namespace moe
