// Guard mode: blocks on pages of their own, so that a wrong access stops at the culprit.
//
// MOE_ACL_GUARD=1 puts a block's end, rounded up to 64 bytes, against a protected page. The bytes
// between the block and its pages' ends (up to 63 behind it, the rest of a page before it) hold a
// canary. MOE_ACL_GUARD=2 puts the end on the exact byte and gives up the alignment. Freed blocks
// stay reserved and protected.
//
// Damage to a canary is reported once: by aclrtFree (which frees all the same) and the copies,
// which then copy nothing, as ACL_ERROR_RT_PARAM_INVALID; by a synchronisation as
// ACL_ERROR_RT_AICORE_EXCEPTION. The message names the block, its size and where it was allocated.
//
// An access to a protected page is reported on stderr: the block, its size, how far off the access
// was, whether the block was freed, and where it was allocated. Then the handler that was there
// before has its turn.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "acl/runtime/memory.h"

namespace moe::acl {

// A guarded block; null when the system has no more mappings or address space for one. `caller` is
// the program's return address. The first call installs the fault handler.
std::shared_ptr<Block> make_guarded_block(size_t size, MemoryKind kind, bool exact,
                                          const void* caller);

// What the fault handler knows of a block. Never changed, except for `freed`, and never destroyed,
// so that the handler can read it without a lock.
struct GuardRecord {
  static constexpr int kMaxFrames = 24;

  uintptr_t reserved_begin;  // with the protected pages
  uintptr_t reserved_end;
  uintptr_t begin;  // the program's bytes
  uintptr_t end;
  void* frames[kMaxFrames];  // of the allocation, innermost first
  int num_frames;
  std::atomic<bool> freed{false};
  GuardRecord* next = nullptr;
};

// Makes a record known to the fault handler, for ever.
void publish(GuardRecord* record);

// Idempotent.
void install_fault_handler();

}  // namespace moe::acl
