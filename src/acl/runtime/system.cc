// What needs neither a device nor a context: versions, names and 16-bit numbers.
#include <bit>

#include "acl/acl.h"
#include "acl/runtime/error.h"

using moe::acl::guarded;
using moe::acl::require_argument;

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  return guarded([&] {
    require_argument(majorVersion, "majorVersion");
    require_argument(minorVersion, "minorVersion");
    require_argument(patchVersion, "patchVersion");
    *majorVersion = 1;
    *minorVersion = 0;
    *patchVersion = 0;
  });
}

const char* aclrtGetSocName() { return "CPU"; }

aclError aclrtGetDeviceCount(uint32_t* count) {
  return guarded([&] {
    require_argument(count, "count");
    *count = 1;
  });
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  return guarded([&] {
    require_argument(runMode, "runMode");
    *runMode = ACL_HOST;
  });
}

float aclFloat16ToFloat(aclFloat16 value) {
  const uint32_t sign = uint32_t{value & 0x8000u} << 16;
  const uint32_t exponent = (value >> 10) & 0x1Fu;
  const uint32_t fraction = value & 0x3FFu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + (127 - 15)) << 23 | fraction << 13);
}

aclFloat16 aclFloatToFloat16(float value) {
  constexpr uint32_t kLargest = 0x7BFF;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const auto round = [](uint32_t fraction, uint32_t shift) {  // to nearest, ties to even
    const uint32_t kept = fraction >> shift;
    const uint32_t rest = fraction & ((1u << shift) - 1);
    const uint32_t half = 1u << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1u)) ? 1u : 0u);
  };
  uint32_t result = 0;
  if (magnitude >= 0x477FF000u) {  // 65520, from where rounding would leave the range; inf, NaN
    result = kLargest;
  } else if (magnitude >= 0x38800000u) {  // 2^-14, the smallest normal number
    result = round(magnitude - (uint32_t{127 - 15} << 23), 13);
  } else if (magnitude >= 0x33000000u) {  // 2^-25, half the smallest subnormal
    result = round((magnitude & 0x7FFFFFu) | 0x800000u, 126 - (magnitude >> 23));
  }
  return static_cast<aclFloat16>(sign | result);
}
