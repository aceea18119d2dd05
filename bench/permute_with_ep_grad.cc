// Benchmarks of PermuteWithEpGrad over shapes.json: time, bytes, and the share of the floor.
// scripts/bench runs this and prints a table. Own flags, before Google Benchmark's:
//   --quick          the small sweep
//   --scaling        only the cases from 1 MB to 8 GB
//   --shapes=FILE    another shapes.json
//   --seconds=S      of measuring per case, beside a first look at every floor pass
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "measure.h"
#include "problem.h"
#include "shapes.h"

namespace moe::bench {
namespace {

struct Options {
  bool quick = false;
  bool scaling = false;
  std::string shapes = MOE_BENCH_SHAPES;
  double seconds = 0.4;
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

bool output_in_l2(const Problem& problem) { return problem.output_bytes() <= l2_bytes(); }

Side side_of(const Problem& problem, Memory& memory, bool with_consumer) {
  const int workers = num_threads();
  Side side;
  side.settle = [&, workers] {
    read_once(memory.settle.at_least(kSettleBytes), kSettleBytes, workers);
    if (output_in_l2(problem)) read_once(problem.tokens_grad(), problem.output_bytes(), workers);
  };
  if (with_consumer) {
    side.after = [&, workers] {
      read_once(problem.tokens_grad(), problem.output_bytes(), workers);
    };
  }
  return side;
}

std::vector<int> floor_workers(const Case& c) {
  std::vector<int> workers;
  const int fewest = c.num_tokens < kFewTokens ? 1 : num_threads();
  for (int count = fewest; count <= num_threads(); ++count) workers.push_back(count);
  return workers;
}

void report(benchmark::State& state, const Case& c, const Problem& problem,
            const Measured& measured) {
  const double bytes = static_cast<double>(problem.bytes_moved());
  state.SetIterationTime(measured.operator_seconds);
  state.counters["bytes"] = bytes;
  state.counters["gb_per_s"] = bytes / measured.operator_seconds / 1e9;
  state.counters["share_of_floor"] = measured.share_of_floor();
  state.counters["floor_us"] = measured.floor_seconds * 1e6;
  state.counters["operator_us"] = measured.operator_seconds * 1e6;
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

void run_case(benchmark::State& state, const Case& c, Memory& memory, const Options& options,
              bool with_consumer) {
  try {
    const Problem problem(c, memory);
    const BoundCall call = problem.plan().bind(problem.pointers());
    problem.check(call);
    std::vector<std::byte> workspace(call.workspace_bytes());
    for (auto _ : state) {
      report(state, c, problem,
             measure([&] { call.run(workspace.data()); }, problem.transfers(),
                     candidates_on(floor_workers(c)), side_of(problem, memory, with_consumer),
                     options.seconds));
    }
  } catch (const std::exception& e) {
    state.SkipWithError(e.what());
  }
}

void plan_and_bind(benchmark::State& state, const Case& c, Memory& memory) {
  const Problem problem(c, memory);
  for (auto _ : state) {
    benchmark::DoNotOptimize(problem.plan().bind(problem.pointers()));
  }
}

void register_cases(const char* group, const std::vector<Case>& cases, Memory& memory,
                    const Options& options) {
  const bool with_consumer = std::strcmp(group, "consumer") == 0;
  for (const Case& c : cases) {
    const std::string name = std::string(group).append("/").append(c.name());
    benchmark::RegisterBenchmark(name.c_str(),
                                 [=, &memory](benchmark::State& state) {
                                   run_case(state, c, memory, options, with_consumer);
                                 })
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMicrosecond);
  }
}

void register_all(const Shapes& shapes, Memory& memory, const Options& options) {
  if (options.scaling) return register_cases("scaling", shapes.scaling, memory, options);
  register_cases("sweep", shapes.sweep, memory, options);
  register_cases("decode", shapes.decode, memory, options);
  register_cases("consumer", shapes.consumer, memory, options);
  benchmark::RegisterBenchmark("plan_and_bind", [&](benchmark::State& state) {
    plan_and_bind(state, shapes.decode.front(), memory);
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

void add_context(const Shapes& shapes, Memory& memory) {
  const Problem problem(shapes.decode.front(), memory);
  benchmark::AddCustomContext("kernel", problem.plan().kernel_name());
  benchmark::AddCustomContext("threads", std::to_string(num_threads()));
  benchmark::AddCustomContext("l2_bytes", std::to_string(l2_bytes()));
  benchmark::AddCustomContext("settle_bytes", std::to_string(kSettleBytes));
}

int run_main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const Shapes shapes = load_shapes(options.shapes, options.quick);
  Memory memory;
  add_context(shapes, memory);
  register_all(shapes, memory, options);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace moe::bench

int main(int argc, char** argv) {
  try {
    return moe::bench::run_main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
