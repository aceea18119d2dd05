// What some numbers of tuning.h depend on of the processor.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace moe::cpu {

// What vectors of 512 bits cost where AVX2 is at hand, too: on an Intel processor a core stops for
// a while when they begin, so that short calls are faster without them; and up to the third
// generation of Xeons sums gain nothing by them.
enum class WideVectors { kFree, kSlowStart, kSlow };

#if defined(__x86_64__)
inline bool is_intel() {
  __builtin_cpu_init();
  return __builtin_cpu_is("intel");
}

inline WideVectors wide_vectors() {
  if (!is_intel()) return WideVectors::kFree;
  // AVX-512 for float16 came with the fourth generation. Not every compiler's
  // __builtin_cpu_supports knows it.
  constexpr unsigned kFeatures = 7, kFloat16 = 1u << 23;
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool has_float16 = __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) && (d & kFloat16);
  return has_float16 ? WideVectors::kSlowStart : WideVectors::kSlow;
}
#else
inline bool is_intel() { return false; }
#endif

}  // namespace moe::cpu
