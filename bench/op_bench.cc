#include "op_bench.h"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "case_run.h"
#include "problems.h"

namespace moe::bench {
namespace {

struct Options {
  bool quick = false;
  bool scaling = false;
  std::string shapes = MOE_BENCH_SHAPES;
  double seconds = 0.4;
};

void report(benchmark::State& state, const Case& c, const CaseFigures& figures) {
  const Measured& measured = figures.measured;
  const double bytes = static_cast<double>(figures.bytes_moved);
  state.SetIterationTime(measured.operator_seconds);
  state.counters["bytes"] = bytes;
  state.counters["gb_per_s"] = bytes / measured.operator_seconds / 1e9;
  state.counters["share_of_floor"] = measured.share_of_floor();
  state.counters["floor_us"] = measured.floor_seconds * 1e6;
  state.counters["operator_us"] = measured.operator_seconds * 1e6;
  state.counters["apart_us"] = figures.apart_seconds * 1e6;
  state.counters["output_in_l2"] = figures.output_in_l2 ? 1 : 0;
  state.counters["row_bytes"] = static_cast<double>(c.row_bytes());
  state.counters["num_tokens"] = static_cast<double>(c.num_tokens);
  state.counters["num_ranks"] = static_cast<double>(c.num_ranks);
  state.counters["strided"] = c.row_gap_bytes ? 1 : 0;
  state.counters["rounds"] = measured.num_rounds;
  state.SetLabel("floor: " + measured.floor.pass.name() + ", " +
                 std::to_string(measured.floor.num_workers) +
                 (measured.floor.num_workers == 1 ? " worker" : " workers"));
}

void measure_case(benchmark::State& state, const Op& op, const Case& c, Memory& memory,
                  const Options& options, bool with_consumer) {
  try {
    const auto problem = op.make(c, memory);
    for (auto _ : state) {
      report(state, c, run_case(*problem, c, memory, options.seconds, with_consumer));
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
                                   measure_case(state, op, c, memory, options, with_consumer);
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

int bench_main(int argc, char** argv, const char* op) {
  try {
    return run_main(argc, argv, find_op(op));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}

}  // namespace moe::bench
