#include "measure.h"

#include <algorithm>
#include <chrono>

namespace moe::bench {
namespace {

constexpr size_t kFinalists = 3;
// A pass that takes longer is disturbed less: one look at each candidate is enough.
constexpr double kLongPassSeconds = 0.02;

double timed(const std::function<void()>& pass, const Side& side) {
  side.settle();
  const double start = seconds_now();
  pass();
  if (side.after) side.after();
  return seconds_now() - start;
}

struct Contestant {
  FloorCandidate candidate;
  std::vector<double> seconds;
};

// One round: the operator beside each contestant.
void run_round(const std::function<void()>& run, std::span<const Transfer> transfers,
               const Side& side, std::vector<Contestant>& contestants,
               std::vector<double>& operator_seconds) {
  for (Contestant& contestant : contestants) {
    const FloorCandidate& floor = contestant.candidate;
    operator_seconds.push_back(timed(run, side));
    contestant.seconds.push_back(
        timed([&] { run_floor_pass(floor.pass, transfers, floor.num_workers); }, side));
  }
}

void keep_fastest(std::vector<Contestant>& contestants) {
  const auto best = [](const Contestant& c) {
    return *std::min_element(c.seconds.begin(), c.seconds.end());
  };
  std::sort(contestants.begin(), contestants.end(),
            [&](const Contestant& a, const Contestant& b) { return best(a) < best(b); });
  contestants.resize(std::min(kFinalists, contestants.size()));
  for (Contestant& contestant : contestants) contestant.seconds.clear();
}

}  // namespace

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<FloorCandidate> candidates_on(std::span<const int> num_workers) {
  std::vector<FloorCandidate> candidates;
  for (int workers : num_workers) {
    for (const FloorPass& pass : floor_passes()) candidates.push_back({pass, workers});
  }
  return candidates;
}

Measured measure(const std::function<void()>& run, std::span<const Transfer> transfers,
                 std::span<const FloorCandidate> candidates, const Side& side,
                 double budget_seconds) {
  std::vector<Contestant> contestants;
  for (const FloorCandidate& candidate : candidates) contestants.push_back({candidate, {}});
  std::vector<double> operator_seconds;
  run_round(run, transfers, side, contestants, operator_seconds);
  if (median(operator_seconds) < kLongPassSeconds) {
    run_round(run, transfers, side, contestants, operator_seconds);
  }
  keep_fastest(contestants);
  operator_seconds.clear();

  int num_rounds = 0;
  const double start = seconds_now();
  while (num_rounds < 5 || (num_rounds < 101 && seconds_now() - start < budget_seconds)) {
    run_round(run, transfers, side, contestants, operator_seconds);
    ++num_rounds;
  }
  const auto fastest = std::min_element(contestants.begin(), contestants.end(),
                                        [](const Contestant& a, const Contestant& b) {
                                          return median(a.seconds) < median(b.seconds);
                                        });
  return {median(operator_seconds), median(fastest->seconds), fastest->candidate, num_rounds};
}

}  // namespace moe::bench
