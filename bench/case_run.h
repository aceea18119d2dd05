// One case measured: the operator beside the floor of the bytes that it must move.
#pragma once

#include <cstdint>

#include "measure.h"
#include "op_problem.h"

namespace moe::bench {

// What every timed pass starts from: all cores have just read this much that nobody needs, more
// than their second-level caches and more than a core's usual part of the third, so inputs come
// from memory, as they do in training where other layers ran in between. Outputs that fit one
// core's second-level cache are touched after that: allocators hand such a block out again while it
// is still warm, and only then does it matter that ordinary stores keep it there.
constexpr int64_t kSettleBytes = 64 << 20;

struct CaseFigures {
  Measured measured;     // without the part that is reported apart
  double apart_seconds;  // of that part
  int64_t bytes_moved;
  bool output_in_l2;
};

// Checks the answer, then measures for about `seconds`. `with_consumer`: the time includes reading
// the output once more. Throws std::runtime_error where the answer is wrong.
CaseFigures run_case(const OpProblem& problem, const Case& c, Memory& memory, double seconds,
                     bool with_consumer);

}  // namespace moe::bench
