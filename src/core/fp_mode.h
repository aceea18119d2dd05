// The floating-point mode that results are defined in.
#pragma once

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#else
#include <cfenv>
#include <cstdint>
#endif

namespace moe {

// Round to nearest even, no flush to zero, no traps, for as long as it lives; then the mode found.
// Each chunk of work needs its own: a thread of the pool has the mode of whoever started it.
class FpMode {
 public:
#if defined(__x86_64__) || defined(__i386__)
  FpMode() : found_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~FpMode() { _mm_setcsr(found_); }

 private:
  static constexpr unsigned kDefault = 0x1F80;  // all exceptions masked, nearest, no FTZ, no DAZ
  const unsigned found_;
#elif defined(__aarch64__)
  FpMode() {
    asm volatile("mrs %0, fpcr" : "=r"(found_));
    set(0);
  }
  ~FpMode() { set(found_); }

 private:
  static void set(uint64_t mode) { asm volatile("msr fpcr, %0" ::"r"(mode) : "memory"); }
  uint64_t found_;
#else
  FpMode() { std::feholdexcept(&found_), std::fesetround(FE_TONEAREST); }
  ~FpMode() { std::fesetenv(&found_); }

 private:
  std::fenv_t found_;
#endif

 public:
  FpMode(const FpMode&) = delete;
  FpMode& operator=(const FpMode&) = delete;
};

}  // namespace moe
