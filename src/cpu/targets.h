// The instruction sets that a file with Highway's foreach_target was compiled for and that this
// machine has. To be included by such a file, below HWY_ONCE.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

namespace moe::cpu {

// Calls fn(name, index) for each, best first; `index` is the place in a table of HWY_EXPORT.
template <class Fn>
void for_each_target(Fn&& fn) {
  if constexpr ((HWY_TARGETS & (HWY_TARGETS - 1)) == 0) {
    fn(hwy::TargetName(HWY_TARGETS), size_t{0});  // Highway's table has one entry then
  } else {
    // A better target has a lower bit. The highest bit is the sign.
    uint64_t targets = static_cast<uint64_t>(hwy::SupportedTargets() & HWY_TARGETS);
    for (; targets; targets &= targets - 1) {
      const auto target = static_cast<int64_t>(targets & ~(targets - 1));
      hwy::ChosenTarget chosen;
      chosen.Update(target);
      fn(hwy::TargetName(target), chosen.GetIndex());
    }
  }
}

}  // namespace moe::cpu
