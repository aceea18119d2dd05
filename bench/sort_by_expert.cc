// Benchmarks of SortByExpert: slots per second, on one thread and on all, with num_experts and
// without, over few slots and many. Each answer is checked first.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "moe/moe.h"

namespace {

using moe::DType, moe::SortByExpert, moe::TensorDesc;

struct SortCase {
  int64_t num_slots, num_experts;
  bool bounded;  // num_experts is given
  int num_threads;

  std::string name() const {
    return "sort_by_expert/" + std::to_string(num_slots) + "/" + std::to_string(num_experts) +
           (bounded ? "" : "/unknown") + "/threads:" + std::to_string(num_threads);
  }
};

std::vector<int32_t> random_experts(const SortCase& c) {
  std::mt19937_64 random(20240607);
  std::vector<int32_t> experts(static_cast<size_t>(c.num_slots));
  for (int32_t& e : experts) {
    e = static_cast<int32_t>(random() % static_cast<uint64_t>(c.num_experts));
  }
  return experts;
}

void check(const std::vector<int32_t>& experts, const std::vector<int32_t>& sorted) {
  std::vector<int32_t> order(experts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return experts[static_cast<size_t>(a)] < experts[static_cast<size_t>(b)];
  });
  for (size_t place = 0; place < order.size(); ++place) {
    if (sorted[static_cast<size_t>(order[place])] != static_cast<int32_t>(place)) {
      throw std::runtime_error("wrong answer at place " + std::to_string(place));
    }
  }
}

void run(benchmark::State& state, const SortCase& c) {
  const std::vector<int32_t> experts = random_experts(c);
  std::vector<int32_t> sorted(experts.size());
  SortByExpert::Args args{.indices = TensorDesc::contiguous(DType::kI32, {c.num_slots}),
                          .sorted_indices = TensorDesc::contiguous(DType::kI32, {c.num_slots})};
  if (c.bounded) args.num_experts = c.num_experts;
  const auto call = SortByExpert::plan(args, {.num_threads = c.num_threads})
                        .bind({.indices = experts.data(), .sorted_indices = sorted.data()});
  std::vector<std::byte> workspace(call.workspace_bytes());
  call.run(workspace.data());
  check(experts, sorted);
  for (auto _ : state) call.run(workspace.data());
  state.SetItemsProcessed(state.iterations() * c.num_slots);
}

void register_case(const SortCase& c) {
  benchmark::RegisterBenchmark(c.name().c_str(),
                               [c](benchmark::State& state) {
                                 try {
                                   run(state, c);
                                 } catch (const std::exception& e) {
                                   state.SkipWithError(e.what());
                                 }
                               })
      ->UseRealTime()
      ->MinTime(0.2);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const int threads : {1, moe::num_threads()}) {
    for (const int64_t num_slots : {64, 4096, 65536, 524288, 2097152}) {
      register_case({num_slots, 8, true, threads});
      register_case({num_slots, 256, true, threads});
      register_case({num_slots, 256, false, threads});
      register_case({num_slots, (int64_t{1} << 31) - 1, false, threads});
    }
  }
  benchmark::RunSpecifiedBenchmarks();
}
