// What plan, bind and run allocate. This program counts every call of malloc and its kin.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <vector>

#include "moe/moe.h"

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
#endif

namespace test {
namespace {

using moe::DType;
using moe::PermuteWithEpGrad;
using moe::TensorDesc;

#ifdef MOE_TEST_COUNTS_MALLOC

template <class Fn>
size_t allocated_by(Fn&& fn) {
  total_bytes = 0;
  counting = true;
  fn();
  counting = false;
  return total_bytes;
}

TEST(PermuteWithEpGradMemory, TheCounterCounts) {
  EXPECT_GE(allocated_by([] { std::vector<char>(12345).front() = 1; }), 12345u);
  EXPECT_GE(allocated_by([] { free(aligned_alloc(64, 6400)); }), 6400u);
}

// T, K, H of megabytes, with inner stride 1 and 2, on every kernel: a run may take the thread
// library's small objects, a plan its own state.
TEST(PermuteWithEpGradMemory, NothingOfTheTensorsSize) {
  constexpr int64_t kTokens = 512, kTopK = 4, kHidden = 1024, kSlots = kTokens * kTopK;
  std::vector<float> grad(static_cast<size_t>(kSlots * kHidden * 2));
  std::vector<float> probs(kSlots), tokens_grad(kTokens * kHidden), probs_grad(kSlots);
  std::vector<int32_t> indices(kSlots);
  for (int32_t i = 0; i < kSlots; ++i) indices[static_cast<size_t>(i)] = i;
  for (const int64_t inner : {1, 2}) {
    for (const std::string& kernel : PermuteWithEpGrad::kernel_names()) {
      if (inner != 1 && kernel != "portable") continue;
      SCOPED_TRACE(testing::Message() << kernel << ", inner stride " << inner);
      const PermuteWithEpGrad::Args args{
          .permuted_tokens_grad =
              TensorDesc::strided(DType::kF32, {kSlots, kHidden}, {2 * kHidden, inner}),
          .sorted_indices = TensorDesc::contiguous(DType::kI32, {kSlots}),
          .permuted_probs_grad = TensorDesc::contiguous(DType::kF32, {kSlots}),
          .top_k = kTopK,
          .ep_range = moe::EpRange{0, kSlots},
          .tokens_grad = TensorDesc::contiguous(DType::kF32, {kTokens, kHidden}),
          .probs_grad = TensorDesc::contiguous(DType::kF32, {kTokens, kTopK}),
          .check_indices = true};
      const moe::Engine engine{.num_threads = 2, .kernel = kernel};
      moe::BoundCall call;
      const size_t by_plan = allocated_by([&] {
        call = PermuteWithEpGrad::plan(args, engine)
                   .bind({grad.data(), indices.data(), probs.data(), tokens_grad.data(),
                          probs_grad.data()});
      });
      EXPECT_LE(by_plan, 4096u);
      EXPECT_LE(call.workspace_bytes(), (size_t{1} << 20) + kSlots / 8);
      std::vector<char> workspace(call.workspace_bytes());
      call.run(workspace.data());  // starts the threads
      EXPECT_LE(allocated_by([&] { call.run(workspace.data()); }), 16384u);
    }
  }
}

#else

TEST(PermuteWithEpGradMemory, NothingOfTheTensorsSize) {
  GTEST_SKIP() << "a sanitizer owns malloc";
}

#endif

}  // namespace
}  // namespace test
