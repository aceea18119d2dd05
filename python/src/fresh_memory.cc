#include "fresh_memory.h"

#include <sys/mman.h>

#include <cstdint>

namespace moe::python {

void prefer_large_pages(void* data, size_t num_bytes) noexcept {
#ifdef MADV_HUGEPAGE
  // Below, the memory comes from what the process has used before, so its pages are there already;
  // and a large page that is used in part is memory lost. glibc's largest such block is 32 MiB, but
  // starts at 128 KiB and grows as blocks are freed.
  constexpr size_t kSmallest = size_t{4} << 20;
  constexpr uintptr_t kPage = 4096;
  if (num_bytes < kSmallest) return;
  const auto first = (reinterpret_cast<uintptr_t>(data) + kPage - 1) / kPage * kPage;
  const auto last = (reinterpret_cast<uintptr_t>(data) + num_bytes) / kPage * kPage;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#else
  static_cast<void>(data);
  static_cast<void>(num_bytes);
#endif
}

}  // namespace moe::python
