// Blocks, copies, and what is wrong with them.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime_support.h"

namespace {

using namespace moe::acl_test;  // NOLINT: the test's own vocabulary

bool guarded_exactly() {
  const char* guard = std::getenv("MOE_ACL_GUARD");
  return guard != nullptr && std::string(guard) == "2";
}

TEST_F(RuntimeTest, MallocChecksItsArguments) {
  void* out = garbage(77);
  EXPECT_EQ(aclrtMalloc(nullptr, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMalloc(&out, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(take_message(), "size: got 0, needs at least 1");
  EXPECT_EQ(aclrtMalloc(&out, 8, static_cast<aclrtMemMallocPolicy>(-1000)),
            ACL_ERROR_INVALID_PARAM);
  for (const size_t size : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX - 4096, size_t{1} << 60}) {
    EXPECT_EQ(aclrtMalloc(&out, size, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_ERROR_RT_MEMORY_ALLOCATION);
    EXPECT_NE(take_message().find(std::to_string(size)), std::string::npos);
    EXPECT_EQ(aclrtMallocHost(&out, size), ACL_ERROR_RT_MEMORY_ALLOCATION);
  }
  EXPECT_EQ(aclrtMallocHost(nullptr, 8), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMallocHost(&out, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(out, garbage(77));
}

TEST_F(RuntimeTest, BlocksAreAlignedAndWritable) {
  for (int policy = ACL_MEM_MALLOC_HUGE_FIRST; policy <= ACL_MEM_MALLOC_NORMAL_ONLY_P2P; ++policy) {
    for (const size_t size : {size_t{1}, size_t{63}, size_t{64}, size_t{100}, size_t{4096},
                              (size_t{2} << 20) + 1, size_t{5} << 20}) {
      void* block = nullptr;
      ASSERT_EQ(aclrtMalloc(&block, size, static_cast<aclrtMemMallocPolicy>(policy)), ACL_SUCCESS);
      if (!guarded_exactly()) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u) << size;
      }
      std::memset(block, 0xAB, size);
      EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
    }
  }
}

TEST_F(RuntimeTest, OnlyTheStartOfALiveBlockIsFreed) {
  char* const block = static_cast<char*>(malloc_device(64));
  int on_the_stack = 0;
  EXPECT_EQ(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtFree(&on_the_stack), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFree(block + 1), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFree(block + 64), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFree(garbage(UINT64_MAX)), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFreeHost(block), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_NE(take_message().find("aclrtMalloc"), std::string::npos);
}

TEST_F(RuntimeTest, HostBlocksAreOfAnotherKind) {
  void* host = nullptr;
  ASSERT_EQ(aclrtMallocHost(&host, 64), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(host), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFreeHost(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtFreeHost(host), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(host), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(RuntimeTest, CopiesGoEveryWay) {
  const std::vector<signed char> source = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<signed char> result(8, 0);
  void* const a = malloc_device(8);
  void* const b = malloc_device(8);
  void* host = nullptr;
  ASSERT_EQ(aclrtMallocHost(&host, 8), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(host, 8, source.data(), 8, ACL_MEMCPY_HOST_TO_HOST), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(a, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(b, 8, a, 8, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(result.data(), 8, b, 8, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  EXPECT_EQ(result, source);
  EXPECT_EQ(aclrtMemset(b, 8, 0x1FF, 3), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(result.data(), 8, b, 8, ACL_MEMCPY_DEFAULT), ACL_SUCCESS);
  EXPECT_EQ(result, (std::vector<signed char>{-1, -1, -1, 4, 5, 6, 7, 8}));
  // Within one block the sides may overlap.
  char* const bytes = static_cast<char*>(b);
  EXPECT_EQ(aclrtMemcpy(bytes + 1, 7, bytes, 7, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(result.data(), 8, b, 8, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  EXPECT_EQ(result, (std::vector<signed char>{-1, -1, -1, -1, 4, 5, 6, 7}));
  EXPECT_EQ(aclrtFree(a), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(b), ACL_SUCCESS);
  EXPECT_EQ(aclrtFreeHost(host), ACL_SUCCESS);
}

TEST_F(RuntimeTest, CopiesCheckInTheDocumentedOrder) {
  char a[8] = {};
  char b[8] = {};
  const auto bad_kind = static_cast<aclrtMemcpyKind>(1000);
  EXPECT_EQ(aclrtMemcpy(nullptr, 0, nullptr, 0, bad_kind), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpyAsync(nullptr, 0, nullptr, 0, bad_kind, garbage(5)), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(nullptr, 4, b, 8, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy(a, 4, nullptr, 8, ACL_MEMCPY_DEFAULT), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtMemcpy(a, 4, b, 8, bad_kind), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(take_message(), "kind: got 1000, needs 0 to 4");
  EXPECT_EQ(aclrtMemcpy(a, 7, b, 8, ACL_MEMCPY_HOST_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(take_message(), "count: got 8, but destMax is 7");
  EXPECT_EQ(aclrtMemset(a, 7, 0, 8), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemset(nullptr, 7, 0, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpyAsync(a, 8, b, 8, ACL_MEMCPY_DEFAULT, garbage(5)),
            ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemsetAsync(a, 8, 1, 8, garbage(5)), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  EXPECT_EQ(a[0], 0);
}

TEST_F(RuntimeTest, CopiesStayInTheirBlocks) {
  char* const block = static_cast<char*>(malloc_device(96));
  ASSERT_EQ(aclrtMemset(block, 96, 7, 96), ACL_SUCCESS);
  std::vector<signed char> host(200, 1);
  EXPECT_EQ(aclrtMemcpy(block, 200, host.data(), 97, ACL_MEMCPY_HOST_TO_DEVICE),
            ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(take_message(), "dst: 97 bytes, but only 96 are left of its block of 96 bytes");
  EXPECT_EQ(aclrtMemcpy(host.data(), 200, block + 90, 7, ACL_MEMCPY_DEVICE_TO_HOST),
            ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(take_message(), "src: 7 bytes, but only 6 are left of its block of 96 bytes");
  EXPECT_EQ(aclrtMemcpy(block + 1, 200, host.data(), SIZE_MAX, ACL_MEMCPY_DEFAULT),
            ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemset(block + 95, 200, 0, 2), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemcpyAsync(block + 95, 200, host.data(), 2, ACL_MEMCPY_DEFAULT, nullptr),
            ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemsetAsync(block + 95, 200, 0, 2, nullptr), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(host, std::vector<signed char>(200, 1));
  EXPECT_EQ(aclrtMemcpy(host.data(), 200, block, 96, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
  EXPECT_EQ(std::vector<signed char>(host.begin(), host.begin() + 96),
            std::vector<signed char>(96, 7));
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
}

TEST_F(RuntimeTest, TheKindHasToFitTheMemory) {
  char host[8] = {};
  void* const block = malloc_device(8);
  EXPECT_EQ(aclrtMemcpy(host, 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_NE(take_message().find("dst: "), std::string::npos);
  EXPECT_EQ(aclrtMemcpy(host, 8, host, 8, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtMemcpy(block, 8, host, 8, ACL_MEMCPY_HOST_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemcpy(host, 8, block, 8, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_NE(take_message().find("no live block"), std::string::npos);
}

TEST_F(RuntimeTest, MemoryOfTheMachine) {
  size_t free = 0;
  size_t total = 0;
  EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), ACL_SUCCESS);
  EXPECT_GT(free, 0u);
  EXPECT_LE(free, total);
  EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, nullptr, &total), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetMemInfo(static_cast<aclrtMemAttr>(1000), &free, &total),
            ACL_ERROR_INVALID_PARAM);
}

}  // namespace
