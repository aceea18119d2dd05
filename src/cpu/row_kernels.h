// What the kernels share that move a row of each token and the rows of its slots: which layouts
// they take, and how their work is cut.
#pragma once

#include <cstdint>
#include <string>

#include "cpu/cut.h"

namespace moe::cpu {

// Why a kernel does not take rows of this inner stride, or so many experts per token; empty when it
// does.
std::string refuses_rows(int64_t inner_stride, int64_t top_k);

// What is moved: a row of `row_bytes` for each token, one for each of its slots in the window, and
// its probs.
struct RowTraffic {
  int64_t num_tokens, top_k, window_rows, row_bytes;
  bool has_probs;
};

Cut cut_rows(const RowTraffic& traffic, int num_threads);

}  // namespace moe::cpu
