// Windows of 13 MiB, whose rows kernels ask for long before they read them: many narrow rows of a
// token, single rows, and rows of no whole number of lines, of a part of the slots.
#pragma once

#include <cstdint>
#include <vector>

#include "moe/moe.h"

namespace test {

// Case is GradCase or UnpermuteCase.
template <class Case>
std::vector<Case> large_windows() {
  const auto window = [](int64_t hidden_size, int64_t top_k, int64_t rows, int64_t slots) {
    return Case{.dtype = moe::DType::kBF16,
                .probs_dtype = moe::DType::kF32,
                .num_tokens = slots / top_k,
                .top_k = top_k,
                .hidden_size = hidden_size,
                .ep_range = moe::EpRange{slots - rows, slots},
                .seed = 13,
                .num_threads = 2};
  };
  return {window(128, 8, 53248, 53248), window(512, 1, 13312, 13312), window(2053, 4, 3400, 6800)};
}

}  // namespace test
