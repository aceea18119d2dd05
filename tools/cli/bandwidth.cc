#include "cli/bandwidth.h"

#include "floor/floor.h"
#include "measure.h"
#include "memory.h"

namespace moe::tools {
namespace {

constexpr int64_t kBytes = 64 << 20;
constexpr int kRounds = 3;

}  // namespace

Bandwidth measure_bandwidth(int num_workers) {
  bench::Buffer from(bench::Buffer::Content::kValues, 0), to(bench::Buffer::Content::kZeros, 64);
  const bench::Transfer transfer{from.at_least(kBytes), kBytes, to.at_least(kBytes), kBytes};
  Bandwidth best;
  for (const bench::FloorPass& pass : bench::floor_passes()) {
    for (int round = 0; round < kRounds; ++round) {
      const double start = bench::seconds_now();
      bench::run_floor_pass(pass, {&transfer, 1}, num_workers);
      const double speed = 2.0 * kBytes / (bench::seconds_now() - start);
      if (speed > best.bytes_per_second) best = {speed, pass.name()};
    }
  }
  return best;
}

}  // namespace moe::tools
