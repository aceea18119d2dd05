// This machine's caches.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace moe::cpu {

// Bytes of one core's second-level cache; 1 MiB where the system does not say.
inline int64_t second_level_cache_bytes() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  static const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (bytes > 0) return bytes;
#endif
  return 1 << 20;
}

}  // namespace moe::cpu
