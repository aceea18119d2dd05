// The CPU kernels of UnpermuteWithEpGrad: one per instruction set that the machine has, and a
// portable one; and what they share.
#pragma once

#include <atomic>

#include "cpu/cut.h"
#include "cpu/last_target.h"
#include "cpu/weighted_slots.h"
#include "ops/unpermute_with_ep_grad.h"

namespace moe::cpu {

// Adds what this machine can run, fastest first.
void add_kernels(UnpermuteWithEpGradKernels& kernels);

// Takes everything, in plain C++.
UnpermuteWithEpGradKernels::value_type portable_unpermute_with_ep_grad();

size_t workspace_bytes(const UnpermuteWithEpGradProblem& problem);

// Which slot each row of the window belongs to: one of those that name it, or none. Slots claim
// rows before any row is written; so every row has one writer, whatever the indices hold.
//
// Mostly each row has one claim. A mark for each row is enough to see that: it is a byte, and the
// owners are neither written nor read.
class RowOwners {
 public:
  RowOwners(const UnpermuteWithEpGradProblem& p, void* workspace);
  static size_t bytes(const UnpermuteWithEpGradProblem& p);

  // First, claims are marks.
  void begin_marks();
  // Whether every row has one of those claims, so that all who claim are owners.
  bool each_has_one(int64_t num_claims) const;
  // Else all claim once more, and what they claim is written down.
  void begin_owners();

  // From any thread. Of several slots that claim a row one is the owner.
  void claim(int64_t row, int64_t slot) {
    if (marks_) {
      at(marks_, row).store(1, std::memory_order_relaxed);
    } else if (wide_) {
      at(wide_, row).store(slot, std::memory_order_relaxed);
    } else {
      at(narrow_, row).store(static_cast<int32_t>(slot), std::memory_order_relaxed);
    }
  }
  // Asked of slots that claimed the row only.
  bool is(int64_t row, int64_t slot) const { return marks_ || owner(row) == slot; }
  bool none(int64_t row) const { return !marks_ && owner(row) == kNone; }

 private:
  static constexpr int64_t kNone = -1;

  template <class Int>
  static std::atomic_ref<Int> at(Int* owners, int64_t row) {
    return std::atomic_ref<Int>(owners[row]);
  }
  int64_t owner(int64_t row) const {
    return wide_ ? at(wide_, row).load(std::memory_order_relaxed)
                 : at(narrow_, row).load(std::memory_order_relaxed);
  }

  int64_t num_rows_;
  uint8_t* marks_ = nullptr;  // where the owners lie else
  int32_t* narrow_ = nullptr;
  int64_t* wide_ = nullptr;  // where slots do not fit 32 bits
};

// Slots [first, last).
struct SlotChunk {
  int64_t first, last;
};

// The chunks of slots that a worker takes, one after another. In between it fills rows that no slot
// owns with zeros, where it is their turn.
class SlotChunks {
 public:
  SlotChunks(const UnpermuteWithEpGradProblem& p, const UnpermuteWithEpGradPointers& at,
             const RowOwners& owners, const Cut& cut, ChunkTaker& taker)
      : p_(p), at_(at), owners_(owners), cut_(cut), taker_(taker) {}

  bool next(SlotChunk& chunk);

 private:
  const UnpermuteWithEpGradProblem& p_;
  const UnpermuteWithEpGradPointers& at_;
  const RowOwners& owners_;
  const Cut& cut_;
  ChunkTaker& taker_;
};

// What there is to do for one slot.
struct Job {
  const uint8_t* grad;  // of the token
  const uint8_t* row;   // of permuted_tokens; null: no dot product
  uint8_t* out;         // null: the slot owns no row
  double weight;        // exact, whatever the prob's dtype
  int64_t slot;
  double dot;  // the result; a float where the tokens are not float64
};

// Jobs that are known at a time: 9 KiB of them stay in the first-level cache beside the rows. And
// how many jobs ahead a row is asked for at most.
constexpr int64_t kMaxJobs = 192;
constexpr int64_t kMaxFarJobs = 64;

// probs_grad of the jobs that have a dot product. Of many at a time: code for another instruction
// set is not called between vectors, where that may cost more than the work.
void store_dots(const UnpermuteWithEpGradProblem& p, const UnpermuteWithEpGradPointers& at,
                const Job* jobs, int64_t count);

// Claims the rows of a chunk's slots. The result is how many did.
using ClaimSlots = int64_t(const UnpermuteWithEpGradProblem&, const UnpermuteWithEpGradPointers&,
                           RowOwners&, const SlotChunk&);

// Writes the rows that the slots of a worker's chunks own, and their probs_grad. `streaming`:
// stores that pass the caches by pay off, and every row begins a cache line.
using RunSlots = void(const UnpermuteWithEpGradProblem&, const UnpermuteWithEpGradPointers&,
                      const RowOwners&, SlotChunks&, bool streaming);

// The whole operator: checks the indices if that is asked for, finds the owners, cuts the slots
// into chunks, hands them to threads, and writes the rows that no slot owns.
void run_in_chunks(const UnpermuteWithEpGradProblem& problem, const UnpermuteWithEpGradPointers& at,
                   void* workspace, ClaimSlots* claim_slots, RunSlots* run_slots);

}  // namespace moe::cpu
