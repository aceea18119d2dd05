// What the kernels share that move a row of each token and the rows of its slots: which layouts
// they take, how their work is cut, and how far ahead rows of large windows are asked for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/fp_mode.h"
#include "cpu/cut.h"
#include "cpu/processor.h"
#include "cpu/tuning.h"

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

inline Cut cut_rows(const RowTraffic& traffic, int num_threads) {
  const FpMode mode;  // the caller's may trap
  const auto top_k = static_cast<double>(traffic.top_k);
  const double rows_per_token = static_cast<double>(traffic.window_rows) /
                                static_cast<double>(std::max<int64_t>(1, traffic.num_tokens));
  const double rows = std::min(rows_per_token, top_k) + 1;  // a window may be longer than its slots
  const double probs = traffic.has_probs ? top_k : 0;
  return Cut(traffic.num_tokens, traffic.row_bytes,
             rows * static_cast<double>(traffic.row_bytes) + probs * 8 + 1, num_threads);
}

// How many rows before its turn one is asked for into the second-level cache; 0: not at all, where
// the window has less than `least_bytes`.
inline int64_t far_rows(int64_t num_rows, int64_t row_bytes, double least_bytes) {
  if (is_intel()) least_bytes = std::max(least_bytes, kIntelFarWindowBytes);
  if (static_cast<double>(num_rows) * static_cast<double>(row_bytes) < least_bytes) return 0;
  return std::clamp<int64_t>(kFarBytes / (row_bytes + 1), 1, kMaxFarRows);
}

}  // namespace moe::cpu
