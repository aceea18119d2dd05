#include "support/allocations.h"

#include <atomic>
#include <cstdlib>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
#define MOE_TEST_COUNTS_MALLOC 1

namespace {

std::atomic<bool> counting{false};
std::atomic<size_t> total_bytes{0};

void count(size_t bytes) {
  if (counting.load(std::memory_order_relaxed)) total_bytes += bytes;
}

}  // namespace

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

__attribute__((visibility("default"))) void* malloc(size_t bytes) {
  count(bytes);
  return __libc_malloc(bytes);
}
__attribute__((visibility("default"))) void* calloc(size_t number, size_t bytes) {
  count(number * bytes);
  return __libc_calloc(number, bytes);
}
__attribute__((visibility("default"))) void* realloc(void* old, size_t bytes) {
  count(bytes);
  return __libc_realloc(old, bytes);
}
__attribute__((visibility("default"))) void* memalign(size_t alignment, size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
__attribute__((visibility("default"))) void* aligned_alloc(size_t alignment, size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
__attribute__((visibility("default"))) int posix_memalign(void** out, size_t alignment,
                                                          size_t bytes) {
  count(bytes);
  *out = __libc_memalign(alignment, bytes);
  return *out ? 0 : 12;
}
}

namespace test {

bool counts_allocations() { return true; }
void start_counting() {
  total_bytes = 0;
  counting = true;
}
size_t stop_counting() {
  counting = false;
  return total_bytes;
}

}  // namespace test

#else

namespace test {

bool counts_allocations() { return false; }
void start_counting() {}
size_t stop_counting() { return 0; }

}  // namespace test

#endif
