#include "cpu/check_indices.h"

#include <cstring>
#include <string>

#include "core/dtypes.h"
#include "core/text.h"
#include "moe/error.h"

namespace moe::cpu {
namespace {

[[noreturn]] void report(int64_t slot, int64_t value, const std::string& problem) {
  throw IndexError(text("sorted_indices: slot ", slot, " holds ", value, ", ", problem), slot,
                   value);
}

template <class Index>
void check(const void* indices, int64_t stride, int64_t num_slots, uint8_t* seen) {
  std::memset(seen, 0, check_indices_bytes(num_slots));
  for (int64_t slot = 0; slot < num_slots; ++slot) {
    const int64_t value = load<Index>(indices, slot * stride);
    if (value < 0 || value >= num_slots) {
      report(slot, value, text("but needs a row in [0, ", num_slots, ")"));
    }
    const uint8_t bit = static_cast<uint8_t>(1u << (value & 7));
    if (seen[value >> 3] & bit) {
      report(slot, value, "which an earlier slot holds, but each slot needs a row of its own");
    }
    seen[value >> 3] |= bit;
  }
}

}  // namespace

void check_indices(DType dtype, const void* indices, int64_t stride, int64_t num_slots,
                   void* workspace) {
  if (num_slots == 0) return;
  visit_index(dtype, [&](auto index) {
    check<decltype(index)>(indices, stride, num_slots, static_cast<uint8_t*>(workspace));
  });
}

}  // namespace moe::cpu
