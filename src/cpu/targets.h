// The instruction sets that a file with Highway's foreach_target was compiled for and that this
// machine has. To be included by such a file, below HWY_ONCE.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/processor.h"
#include "hwy/highway.h"

namespace moe::cpu {

struct Target {
  const char* name;
  size_t index;      // in a table of HWY_EXPORT
  WideVectors wide;  // kFree where vectors are shorter
};

inline WideVectors wide_vectors_of([[maybe_unused]] int64_t target, [[maybe_unused]] int64_t all) {
#if HWY_ARCH_X86
  if (target < HWY_AVX2 && (all & HWY_AVX2)) return wide_vectors();
#endif
  return WideVectors::kFree;
}

// Calls fn(Target) for each, best first.
template <class Fn>
void for_each_target(Fn&& fn) {
  if constexpr ((HWY_TARGETS & (HWY_TARGETS - 1)) == 0) {
    // Highway's table has one entry then.
    fn(Target{hwy::TargetName(HWY_TARGETS), 0, WideVectors::kFree});
  } else {
    const int64_t all = hwy::SupportedTargets() & HWY_TARGETS;
    // A better target has a lower bit. The highest bit is the sign.
    for (auto targets = static_cast<uint64_t>(all); targets; targets &= targets - 1) {
      const auto target = static_cast<int64_t>(targets & ~(targets - 1));
      hwy::ChosenTarget chosen;
      chosen.Update(target);
      fn(Target{hwy::TargetName(target), chosen.GetIndex(), wide_vectors_of(target, all)});
    }
  }
}

}  // namespace moe::cpu
