#include "ops/arguments.h"

#include "core/text.h"
#include "moe/error.h"

namespace moe {

void check_top_k(int64_t top_k, const char* name, int64_t num_slots) {
  if (top_k < 1) throw InvalidArgument("top_k", text(top_k, ", but needs at least 1"));
  if (num_slots % top_k == 0) return;
  throw InvalidArgument(name, text(num_slots, " slots, but needs a multiple of top_k ", top_k));
}

void check_num_slots(const char* name, int64_t num_slots) {
  constexpr int64_t kMost = int64_t{1} << 56;
  if (num_slots <= kMost) return;
  throw InvalidArgument(name, text(num_slots, " slots, but takes at most 2^56"));
}

EpRange window_of(const std::optional<EpRange>& ep_range, int64_t num_slots, int64_t rows) {
  if (!ep_range) return {0, rows};
  const auto [begin, end] = *ep_range;
  if (begin < 0 || end < begin || end > num_slots) {
    throw InvalidArgument(
        "ep_range", text("[", begin, ", ", end, "), but needs 0 <= begin <= end <= ", num_slots,
                         ", the number of slots"));
  }
  return *ep_range;
}

void check_rows(const char* name, int64_t rows, const EpRange& window) {
  const int64_t needed = window.end - window.begin;
  if (rows >= needed) return;
  throw InvalidArgument(name, text(rows, " rows, but the range [", window.begin, ", ", window.end,
                                   ") needs at least ", needed));
}

void check_float64_pair(const char* name, DType dtype, const char* other_name, DType other) {
  if ((dtype == DType::kF64) == (other == DType::kF64)) return;
  throw InvalidArgument(name, text("dtype ", dtype_name(dtype), " beside ", dtype_name(other), " ",
                                   other_name, ", but float64 goes with float64 only"));
}

int threads_of(const Engine& engine) {
  if (engine.num_threads < 0) {
    throw InvalidArgument("num_threads", text(engine.num_threads, ", but needs 0 or more"));
  }
  return engine.num_threads ? engine.num_threads : num_threads();
}

}  // namespace moe
