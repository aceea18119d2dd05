#include "op_bench.h"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "measure.h"

namespace moe::bench {
namespace {

struct Options {
  bool quick = false;
  bool scaling = false;
  std::string shapes = MOE_BENCH_SHAPES;
  double seconds = 0.4;
};

// What a program measures.
struct Op {
  const char* name;
  MakeProblem make;
};

// What every timed pass starts from: all cores have just read 64 MiB that nobody needs, more than
// their second-level caches and more than a core's usual part of the third, so inputs come from
// memory, as they do in training where other layers ran in between. Outputs that fit one core's
// second-level cache are touched after that: allocators hand such a block out again while it is
// still warm, and only then does it matter that ordinary stores keep it there.
constexpr int64_t kSettleBytes = 64 << 20;
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

void report(benchmark::State& state, const Case& c, const OpProblem& problem,
            const Measured& measured, double apart_seconds) {
  const double bytes = static_cast<double>(problem.bytes_moved());
  state.SetIterationTime(measured.operator_seconds);
  state.counters["bytes"] = bytes;
  state.counters["gb_per_s"] = bytes / measured.operator_seconds / 1e9;
  state.counters["share_of_floor"] = measured.share_of_floor();
  state.counters["floor_us"] = measured.floor_seconds * 1e6;
  state.counters["operator_us"] = measured.operator_seconds * 1e6;
  state.counters["apart_us"] = apart_seconds * 1e6;
  state.counters["output_in_l2"] = output_in_l2(problem) ? 1 : 0;
  state.counters["row_bytes"] = static_cast<double>(c.row_bytes());
  state.counters["num_tokens"] = static_cast<double>(c.num_tokens);
  state.counters["num_ranks"] = static_cast<double>(c.num_ranks);
  state.counters["strided"] = c.row_gap_bytes ? 1 : 0;
  state.counters["rounds"] = measured.num_rounds;
  state.SetLabel("floor: " + measured.floor.pass.name() + ", " +
                 std::to_string(measured.floor.num_workers) +
                 (measured.floor.num_workers == 1 ? " worker" : " workers"));
}

void run_case(benchmark::State& state, const Op& op, const Case& c, Memory& memory,
              const Options& options, bool with_consumer) {
  try {
    const auto problem = op.make(c, memory);
    const BoundCall call = problem->bind();
    problem->check(call);
    std::vector<std::byte> workspace(call.workspace_bytes());
    const Side side = side_of(*problem, memory, with_consumer);
    for (auto _ : state) {
      Measured measured = measure([&] { call.run(workspace.data()); }, problem->transfers(),
                                  candidates_on(floor_workers(c)), side, options.seconds);
      const double apart = part_seconds(*problem, side, measured.num_rounds);
      measured.operator_seconds -= apart;
      report(state, c, *problem, measured, apart);
    }
  } catch (const std::exception& e) {
    state.SkipWithError(e.what());
  }
}

void plan_and_bind(benchmark::State& state, const Op& op, const Case& c, Memory& memory) {
  const auto problem = op.make(c, memory);
  for (auto _ : state) benchmark::DoNotOptimize(problem->bind());
}

void register_cases(const char* group, const std::vector<Case>& cases, const Op& op, Memory& memory,
                    const Options& options) {
  const bool with_consumer = std::strcmp(group, "consumer") == 0;
  for (const Case& c : cases) {
    const std::string name = std::string(group).append("/").append(c.name());
    benchmark::RegisterBenchmark(name.c_str(),
                                 [=, &memory](benchmark::State& state) {
                                   run_case(state, op, c, memory, options, with_consumer);
                                 })
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMicrosecond);
  }
}

void register_all(const Shapes& shapes, const Op& op, Memory& memory, const Options& options) {
  if (options.scaling) return register_cases("scaling", shapes.scaling, op, memory, options);
  register_cases("sweep", shapes.sweep, op, memory, options);
  register_cases("decode", shapes.decode, op, memory, options);
  register_cases("consumer", shapes.consumer, op, memory, options);
  benchmark::RegisterBenchmark("plan_and_bind", [&, op](benchmark::State& state) {
    plan_and_bind(state, op, shapes.decode.front(), memory);
  });
}

// Takes the own flags out of the command line.
Options parse(int& argc, char** argv) {
  Options options;
  const auto value_of = [](const char* argument, const char* flag) -> const char* {
    const size_t length = std::strlen(flag);
    return std::strncmp(argument, flag, length) == 0 ? argument + length : nullptr;
  };
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      options.quick = true;
      options.seconds = 0.2;
    } else if (std::strcmp(argv[i], "--scaling") == 0) {
      options.scaling = true;
    } else if (const char* shapes = value_of(argv[i], "--shapes=")) {
      options.shapes = shapes;
    } else if (const char* seconds = value_of(argv[i], "--seconds=")) {
      options.seconds = std::stod(seconds);
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  return options;
}

void add_context(const Shapes& shapes, const Op& op, Memory& memory) {
  benchmark::AddCustomContext("op", op.name);
  benchmark::AddCustomContext("kernel", op.make(shapes.decode.front(), memory)->kernel_name());
  benchmark::AddCustomContext("threads", std::to_string(num_threads()));
  benchmark::AddCustomContext("l2_bytes", std::to_string(l2_bytes()));
  benchmark::AddCustomContext("settle_bytes", std::to_string(kSettleBytes));
}

int run_main(int argc, char** argv, const Op& op) {
  const Options options = parse(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const Shapes shapes = load_shapes(options.shapes, options.quick);
  Memory memory;
  add_context(shapes, op, memory);
  register_all(shapes, op, memory, options);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace

int64_t OpProblem::bytes_moved() const {
  int64_t bytes = 0;
  for (const Transfer& t : transfers()) bytes += t.bytes_read + t.bytes_written;
  return bytes;
}

int bench_main(int argc, char** argv, const char* op, MakeProblem make) {
  try {
    return run_main(argc, argv, {op, make});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}

}  // namespace moe::bench
