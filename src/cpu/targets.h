// The instruction sets that a file with Highway's foreach_target was compiled for and that this
// machine has. To be included by such a file, below HWY_ONCE.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

namespace moe::cpu {

// Calls fn(name, index) for each, best first; `index` is the place in a table of HWY_EXPORT. The
// targets of the mask `last` come after the others.
template <class Fn>
void for_each_target(Fn&& fn, [[maybe_unused]] int64_t last = 0) {
  if constexpr ((HWY_TARGETS & (HWY_TARGETS - 1)) == 0) {
    fn(hwy::TargetName(HWY_TARGETS), size_t{0});  // Highway's table has one entry then
  } else {
    // A better target has a lower bit. The highest bit is the sign.
    const auto visit = [&](int64_t some) {
      for (auto targets = static_cast<uint64_t>(some); targets; targets &= targets - 1) {
        const auto target = static_cast<int64_t>(targets & ~(targets - 1));
        hwy::ChosenTarget chosen;
        chosen.Update(target);
        fn(hwy::TargetName(target), chosen.GetIndex());
      }
    };
    const int64_t all = hwy::SupportedTargets() & HWY_TARGETS;
    visit(all & ~last);
    visit(all & last);
  }
}

}  // namespace moe::cpu
