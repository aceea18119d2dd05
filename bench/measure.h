// Times of an operator and of its floor, measured side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "floor/floor.h"

namespace moe::bench {

struct FloorCandidate {
  FloorPass pass;
  int num_workers;
};

// All floor passes on each of these numbers of workers.
std::vector<FloorCandidate> candidates_on(std::span<const int> num_workers);

struct Side {
  std::function<void()> settle;  // runs before each timed pass, untimed
  std::function<void()> after;   // timed as part of each pass; may be empty
};

struct Measured {
  double operator_seconds;
  double floor_seconds;
  FloorCandidate floor;  // the fastest
  int num_rounds;        // that the medians are of
  double share_of_floor() const { return floor_seconds / operator_seconds; }
};

// First every candidate once or twice, each beside the operator; then the three fastest in turn,
// each beside the operator again, for about `budget_seconds`. Both figures are medians of that
// second part.
Measured measure(const std::function<void()>& run, std::span<const Transfer> transfers,
                 std::span<const FloorCandidate> candidates, const Side& side,
                 double budget_seconds);

double seconds_now();
double median(std::vector<double> values);

}  // namespace moe::bench
