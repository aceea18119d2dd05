// The experts that slots name, as a sort reads them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/dtypes.h"
#include "ops/sort_by_expert.h"

namespace moe::cpu {

// Some of a sequence: [first, last).
struct Part {
  int64_t first, last;
};

// Part `index` of `num_parts` equal ones, whose order is that of the sequence.
inline Part part_of(int64_t size, int index, int num_parts) {
  const auto start = [&](int64_t i) {
    return size / num_parts * i + std::min<int64_t>(i, size % num_parts);
  };
  return {start(index), start(index + 1)};
}

// Calls fn(slot, id) for the slots of a part, in order.
template <class Index, class Fn>
void for_each_id(const SortByExpertProblem& p, const void* indices, const Part& part, Fn fn) {
  // Without a gap between tokens, all slots are one long row.
  const bool flat = p.token_stride == p.top_k * p.slot_stride || p.num_tokens == 1;
  const int64_t row_length = flat ? p.num_slots() : p.top_k, step = p.slot_stride;
  int64_t slot = part.first;
  if (slot == part.last) return;
  int64_t token = slot / row_length, k = slot % row_length;
  while (slot < part.last) {
    const int64_t end = slot + std::min(row_length - k, part.last - slot);
    int64_t at = token * p.token_stride + k * step;
#pragma GCC unroll 4
    for (; slot < end; ++slot, at += step) fn(slot, int64_t{load<Index>(indices, at)});
    ++token, k = 0;
  }
}

// Slots by the place of their expert in the order: the experts first, first + 1, ..., `count` of
// them, then all slots that are not routed.
struct Groups {
  uint64_t first = 0, count = 0;

  // A negative id is a huge number here.
  uint64_t of(int64_t id) const { return std::min(static_cast<uint64_t>(id) - first, count); }
  int64_t size() const { return static_cast<int64_t>(count) + 1; }
};

}  // namespace moe::cpu
