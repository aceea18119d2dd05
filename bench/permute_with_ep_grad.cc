// Benchmarks of PermuteWithEpGrad over shapes.json: time, bytes, and the share of the floor.
// scripts/bench runs this and prints a table.
#include "op_bench.h"
#include "problem.h"

int main(int argc, char** argv) {
  using namespace moe::bench;
  return bench_main(argc, argv, "permute_with_ep_grad", make_problem<Problem>);
}
