// The floating-point mode that a caller may have.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>

namespace test {

// The control register that modes are set through: rounding in bits 13 and 14, flush to zero in 15,
// denormals are zero in 6, exception masks in 7 to 12, and sticky exception flags below.
class ControlRegister {
 public:
  explicit ControlRegister(unsigned mode) : found_(_mm_getcsr()) { _mm_setcsr(mode); }
  ~ControlRegister() { _mm_setcsr(found_); }
  static unsigned mode() { return _mm_getcsr() & ~0x3fu; }

 private:
  unsigned found_;
};

// What a caller may have set, and traps for every exception.
inline constexpr unsigned kCallerModes[] = {
    0x1f80 | 0x8040,           // subnormals are zero
    0x1f80 | 0x2000,           // down
    0x1f80 | 0x4000,           // up
    0x1f80 | 0x6000,           // to zero
    0x1f80 | 0x6000 | 0x8040,  // to zero, subnormals too
    0x0000,                    // every exception traps
};

}  // namespace test
#endif
