#include "cpu/row_kernels.h"

#include <algorithm>

#include "core/fp_mode.h"
#include "core/text.h"
#include "cpu/tuning.h"

namespace moe::cpu {

std::string refuses_rows(int64_t inner_stride, int64_t top_k) {
  if (inner_stride != 1) return text("inner stride ", inner_stride, ", but takes 1 only");
  if (top_k > kMaxRows) return text("top_k ", top_k, ", but takes at most ", kMaxRows);
  return {};
}

Cut cut_rows(const RowTraffic& traffic, int num_threads) {
  const FpMode mode;  // the caller's may trap
  const auto top_k = static_cast<double>(traffic.top_k);
  const double rows_per_token = static_cast<double>(traffic.window_rows) /
                                static_cast<double>(std::max<int64_t>(1, traffic.num_tokens));
  const double rows = std::min(rows_per_token, top_k) + 1;  // a window may be longer than its slots
  const double probs = traffic.has_probs ? top_k : 0;
  return Cut(traffic.num_tokens, traffic.row_bytes,
             rows * static_cast<double>(traffic.row_bytes) + probs * 8 + 1, num_threads);
}

}  // namespace moe::cpu
