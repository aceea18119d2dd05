// The benchmark program of one operator. scripts/bench runs it and prints a table.
#include "op_bench.h"

int main(int argc, char** argv) { return moe::bench::bench_main(argc, argv, MOE_BENCH_OP); }
