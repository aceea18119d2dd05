#include "case_run.h"

#include <vector>

namespace moe::bench {
namespace {

// Below this, starting threads may cost more than they give: the floor is then the best of all
// numbers of workers.
constexpr int64_t kFewTokens = 512;

bool output_in_l2(const OpProblem& problem) { return problem.output_bytes() <= l2_bytes(); }

Side side_of(const OpProblem& problem, Memory& memory, bool with_consumer) {
  const int workers = num_threads();
  Side side;
  side.settle = [&, workers] {
    read_once(memory.settle.at_least(kSettleBytes), kSettleBytes, workers);
    if (output_in_l2(problem)) read_once(problem.output(), problem.output_bytes(), workers);
  };
  if (with_consumer) {
    side.after = [&, workers] { read_once(problem.output(), problem.output_bytes(), workers); };
  }
  return side;
}

std::vector<int> floor_workers(const Case& c) {
  std::vector<int> workers;
  const int fewest = c.num_tokens < kFewTokens ? 1 : num_threads();
  for (int count = fewest; count <= num_threads(); ++count) workers.push_back(count);
  return workers;
}

// The median time of the part that is reported apart, from the same start as the whole.
double part_seconds(const OpProblem& problem, const Side& side, int num_rounds) {
  const BoundCall part = problem.part_apart();
  std::vector<std::byte> workspace(part.workspace_bytes());
  std::vector<double> seconds;
  for (int round = 0; round < num_rounds; ++round) {
    side.settle();
    const double start = seconds_now();
    part.run(workspace.data());
    seconds.push_back(seconds_now() - start);
  }
  return median(seconds);
}

}  // namespace

int64_t OpProblem::bytes_moved() const {
  int64_t bytes = 0;
  for (const Transfer& t : transfers()) bytes += t.bytes_read + t.bytes_written;
  return bytes;
}

CaseFigures run_case(const OpProblem& problem, const Case& c, Memory& memory, double seconds,
                     bool with_consumer) {
  const BoundCall call = problem.bind();
  problem.check(call);
  std::vector<std::byte> workspace(call.workspace_bytes());
  const Side side = side_of(problem, memory, with_consumer);
  Measured measured = measure([&] { call.run(workspace.data()); }, problem.transfers(),
                              candidates_on(floor_workers(c)), side, seconds);
  const double apart = part_seconds(problem, side, measured.num_rounds);
  measured.operator_seconds -= apart;
  return {measured, apart, problem.bytes_moved(), output_in_l2(problem)};
}

}  // namespace moe::bench
