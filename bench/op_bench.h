// The benchmark program of an operator: cases of shapes.json, each timed side by side with the
// floor of the bytes that it must move.
#pragma once

namespace moe::bench {

// `op` names one of all_ops(). Own flags, before Google Benchmark's:
//   --quick          the small sweep
//   --scaling        only the cases from 1 MB to 8 GB
//   --shapes=FILE    another shapes.json
//   --seconds=S      of measuring per case, beside a first look at every floor pass
int bench_main(int argc, char** argv, const char* op);

}  // namespace moe::bench
