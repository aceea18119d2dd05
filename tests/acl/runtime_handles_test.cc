// The handle table itself: what it gives out, and what it takes for a live handle.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "acl/runtime/handles.h"

namespace {

using moe::acl::HandleKind;
using moe::acl::HandleTable;

TEST(HandleTable, FindsWhatLives) {
  HandleTable<int> table(HandleKind::kStream);
  void* const one = table.insert(std::make_shared<int>(1));
  void* const two = table.insert(std::make_shared<int>(2));
  EXPECT_NE(one, two);
  EXPECT_EQ(*table.find(one), 1);
  EXPECT_EQ(*table.find(two), 2);
  EXPECT_EQ(*table.erase(one), 1);
  EXPECT_EQ(table.find(one), nullptr);
  EXPECT_EQ(table.erase(one), nullptr);
  EXPECT_EQ(*table.find(two), 2);
}

TEST(HandleTable, NoHandleComesBack) {
  HandleTable<int> table(HandleKind::kEvent);
  std::set<void*> seen;
  for (int i = 0; i < 5000; ++i) {
    void* const handle = table.insert(std::make_shared<int>(i));
    EXPECT_TRUE(seen.insert(handle).second);
    if (i % 3 != 0) {
      EXPECT_EQ(*table.erase(handle), i);
    }
  }
}

TEST(HandleTable, ObjectsInUseOutliveTheirHandle) {
  HandleTable<int> table(HandleKind::kTensor);
  void* const handle = table.insert(std::make_shared<int>(7));
  const auto object = table.find(handle);
  table.erase(handle);
  EXPECT_EQ(*object, 7);
  EXPECT_EQ(object.use_count(), 1);
}

// Chunks grow by doubling: indices around their borders are the ones to get wrong.
TEST(HandleTable, ManyAtOnce) {
  HandleTable<int> table(HandleKind::kTensor);
  std::vector<void*> handles;
  for (int i = 0; i < 10000; ++i) handles.push_back(table.insert(std::make_shared<int>(i)));
  for (int i = 0; i < 10000; ++i) ASSERT_EQ(*table.find(handles[i]), i);
  for (int i = 9999; i >= 0; --i) ASSERT_EQ(*table.erase(handles[i]), i);
  for (int i = 0; i < 10000; ++i) ASSERT_EQ(table.find(handles[i]), nullptr);
}

TEST(HandleTable, ForeignPointersAreNoHandles) {
  HandleTable<int> table(HandleKind::kStream);
  HandleTable<int> other(HandleKind::kEvent);
  void* const handle = table.insert(std::make_shared<int>(1));
  const auto bits = reinterpret_cast<uintptr_t>(handle);
  int on_the_stack = 0;
  EXPECT_EQ(other.find(handle), nullptr);
  EXPECT_EQ(table.find(nullptr), nullptr);
  EXPECT_EQ(table.find(&on_the_stack), nullptr);
  for (int bit = 0; bit < 64; ++bit) {
    void* const flipped = reinterpret_cast<void*>(bits ^ uint64_t{1} << bit);
    EXPECT_EQ(table.find(flipped), nullptr) << bit;
    EXPECT_EQ(table.erase(flipped), nullptr) << bit;
  }
  EXPECT_EQ(*table.find(handle), 1);
}

}  // namespace
