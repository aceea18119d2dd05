// How much work a test may do: sanitizers slow the same work down tenfold and more.
#pragma once

#include <algorithm>
#include <cstdint>

namespace test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

// `count` repetitions, a tenth of them (at least one) under a sanitizer.
constexpr int64_t effort(int64_t count) {
  return kSanitized ? std::max<int64_t>(1, count / 10) : count;
}

}  // namespace test
