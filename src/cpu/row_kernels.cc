#include "cpu/row_kernels.h"

#include "core/text.h"
#include "cpu/tuning.h"

namespace moe::cpu {

std::string refuses_rows(int64_t inner_stride, int64_t top_k) {
  if (inner_stride != 1) return text("inner stride ", inner_stride, ", but takes 1 only");
  if (top_k > kMaxRows) return text("top_k ", top_k, ", but takes at most ", kMaxRows);
  return {};
}

}  // namespace moe::cpu
