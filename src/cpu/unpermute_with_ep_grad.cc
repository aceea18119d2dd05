// UnpermuteWithEpGrad on the CPU: each slot writes the row that it owns and takes the dot product
// in the same pass; rows that nobody owns become zeros beside that.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/unpermute_with_ep_grad.cc"
// clang-format off: foreach_target comes first, and includes this file again for each target.
#include "hwy/foreach_target.h"
#include "cpu/unpermute_with_ep_grad-inl.h"
// clang-format on

#if HWY_ONCE
#include <limits>

#include "core/text.h"
#include "core/threads.h"
#include "cpu/check_indices.h"
#include "cpu/cut.h"
#include "cpu/streaming.h"
#include "cpu/targets.h"

namespace moe::cpu {
namespace {

using Problem = UnpermuteWithEpGradProblem;
using Pointers = UnpermuteWithEpGradPointers;

HWY_EXPORT(run_unpermute_grad);
HWY_EXPORT(vectors_fit_stripes);

constexpr int64_t kCacheLine = 64;

int64_t row_bytes_of(const Problem& p) { return p.hidden_size * dtype_bytes(p.tokens_dtype); }

int64_t owner_bytes(const Problem& p) {
  return p.num_slots() > std::numeric_limits<int32_t>::max() ? 8 : 4;
}

// Slots as if they were tokens without bytes of their own: then no part of a row is a chunk, and
// each dot product stays whole.
Cut cut_of(const Problem& p) {
  const FpMode mode;  // the caller's may trap
  const double row_bytes = static_cast<double>(row_bytes_of(p));
  const double rows_per_slot =
      static_cast<double>(p.num_rows()) / static_cast<double>(std::max<int64_t>(1, p.num_slots()));
  const double rows = std::min(rows_per_slot, 1.0) * (p.has_probs_grad ? 2 : 1);
  const double tokens = 1 / static_cast<double>(p.top_k);
  return Cut(p.num_slots(), 0, (rows + tokens) * row_bytes + 16, p.num_threads);
}

// All slots claim their rows. Only memory of the slots' size is touched, so a chunk of them is
// long.
int64_t claim_all(const Problem& p, const Pointers& at, RowOwners& owners,
                  ClaimSlots* claim_slots) {
  const Cut cut(p.num_slots(), 0, 16, p.num_threads);
  std::atomic<int64_t> claims = 0;
  parallel_chunks(cut.num_chunks(), cut.num_workers(), [&](int64_t i, int) {
    const Chunk chunk = cut[i];
    claims += claim_slots(p, at, owners, {chunk.first_token, chunk.last_token});
  });
  return claims;
}

void find_owners(const Problem& p, const Pointers& at, RowOwners& owners, ClaimSlots* claim_slots) {
  if (p.num_rows() <= p.num_slots()) {
    owners.begin_marks();
    if (owners.each_has_one(claim_all(p, at, owners, claim_slots))) return;
  }
  owners.begin_owners();
  claim_all(p, at, owners, claim_slots);
}

// Writes the rows in [first, last) that no slot owns.
void write_zeros(const Problem& p, const Pointers& at, const RowOwners& owners, int64_t first,
                 int64_t last) {
  const int64_t row_bytes = row_bytes_of(p);
  if (row_bytes == 0) return;
  for (int64_t row = first; row < last; ++row) {
    if (row < p.num_rows() && !owners.none(row)) continue;
    std::memset(static_cast<char*>(at.permuted_tokens_grad) + row * row_bytes, 0,
                static_cast<size_t>(row_bytes));
  }
}

// Rows as a chunk of write_zeros has them, if all of them are zeros.
int64_t rows_per_chunk(const Problem& p) {
  return std::max<int64_t>(1, kChunkBytes / (row_bytes_of(p) + 1));
}

// Streaming stores need whole lines, and a dot product has no place for a head of another length.
bool may_stream(const Problem& p, const Pointers& at, int num_workers) {
  const int64_t row_bytes = row_bytes_of(p);
  return row_bytes % kCacheLine == 0 &&
         reinterpret_cast<uintptr_t>(at.permuted_tokens_grad) % kCacheLine == 0 &&
         use_streaming_of_rows(at.permuted_tokens_grad, p.num_output_rows * row_bytes,
                               dtype_bytes(p.tokens_dtype), num_workers);
}

// Whether so little is read and written that AVX2 is faster where vectors of 512 bits begin slowly.
bool is_short_call(const Problem& p) {
  const FpMode mode;  // the caller's may trap
  const double rows = static_cast<double>(p.num_output_rows) +
                      static_cast<double>(p.has_probs_grad ? p.num_rows() : 0) +
                      static_cast<double>(std::min(p.num_tokens, p.num_rows()));
  return rows * static_cast<double>(row_bytes_of(p)) < kShortGradBytes;
}

std::string refuses(const Problem& p) {
  if (p.token_inner_stride != 1) {
    return text("inner stride ", p.token_inner_stride,
                " of unpermuted_tokens_grad, but takes 1 only");
  }
  if (p.has_probs_grad && p.row_inner_stride != 1) {
    return text("inner stride ", p.row_inner_stride, " of permuted_tokens, but takes 1 only");
  }
  return {};
}

}  // namespace

void store_dots(const Problem& p, const Pointers& at, const Job* jobs, int64_t count) {
  if (!p.has_probs_grad) return;
  visit_float(p.probs_dtype, [&](auto prob) {
    using P = decltype(prob);
    for (int64_t j = 0; j < count; ++j) {
      if (!jobs[j].row) continue;
      store(at.probs_grad, jobs[j].slot, narrow<P>(static_cast<Accumulator<P>>(jobs[j].dot)));
    }
  });
}

RowOwners::RowOwners(const Problem& p, void* workspace) : num_rows_(p.num_rows()) {
  const auto alignment = static_cast<uintptr_t>(owner_bytes(p));
  const uintptr_t start = reinterpret_cast<uintptr_t>(workspace);
  auto* owners = static_cast<char*>(workspace) + (alignment - start % alignment) % alignment;
  if (alignment == sizeof(int64_t)) {
    wide_ = reinterpret_cast<int64_t*>(owners);
  } else {
    narrow_ = reinterpret_cast<int32_t*>(owners);
  }
}

size_t RowOwners::bytes(const Problem& p) {
  if (p.num_rows() == 0) return 0;
  // A workspace may have any alignment.
  return static_cast<size_t>(p.num_rows() * owner_bytes(p) + owner_bytes(p) - 1);
}

void RowOwners::begin_marks() {
  marks_ = wide_ ? reinterpret_cast<uint8_t*>(wide_) : reinterpret_cast<uint8_t*>(narrow_);
  std::fill_n(marks_, num_rows_, uint8_t{0});
}

bool RowOwners::each_has_one(int64_t num_claims) const {
  return num_claims == num_rows_ && std::count(marks_, marks_ + num_rows_, uint8_t{1}) == num_rows_;
}

void RowOwners::begin_owners() {
  marks_ = nullptr;
  if (wide_) {
    std::fill_n(wide_, num_rows_, kNone);
  } else {
    std::fill_n(narrow_, num_rows_, static_cast<int32_t>(kNone));
  }
}

bool SlotChunks::next(SlotChunk& chunk) {
  for (int64_t i; taker_.next(i);) {
    if (i < cut_.num_chunks()) {
      const Chunk slots = cut_[i];
      chunk = {slots.first_token, slots.last_token};
      return true;
    }
    const int64_t step = rows_per_chunk(p_), first = (i - cut_.num_chunks()) * step;
    write_zeros(p_, at_, owners_, first, std::min(first + step, p_.num_output_rows));
  }
  return false;
}

size_t workspace_bytes(const Problem& p) {
  // The owners lie where the check's bits were.
  return std::max(RowOwners::bytes(p), p.check_indices ? check_indices_bytes(p.num_slots()) : 0);
}

// Rows without elements: nothing to write, no address to read from, and every dot product is 0.
void run_empty_rows(const Problem& p, const Pointers& at) {
  if (!p.has_probs_grad || p.num_slots() == 0) return;
  std::memset(at.probs_grad, 0, static_cast<size_t>(p.num_slots() * dtype_bytes(p.probs_dtype)));
}

void run_in_chunks(const Problem& p, const Pointers& at, void* workspace, ClaimSlots* claim_slots,
                   RunSlots* run_slots) {
  if (p.check_indices) {
    check_indices(p.index_dtype, at.sorted_indices, p.index_stride, p.num_slots(), workspace);
  }
  if (p.hidden_size == 0) return run_empty_rows(p, at);
  RowOwners owners(p, workspace);
  find_owners(p, at, owners, claim_slots);
  const Cut cut = cut_of(p);
  const bool streaming = may_stream(p, at, cut.num_workers());
  const int64_t step = rows_per_chunk(p);
  const int64_t zero_chunks = (p.num_output_rows + step - 1) / step;
  const int num_workers =
      std::max(cut.num_workers(), static_cast<int>(std::min<int64_t>(zero_chunks, p.num_threads)));
  parallel_takers(cut.num_chunks() + zero_chunks, num_workers, [&](ChunkTaker& taker, int) {
    SlotChunks chunks(p, at, owners, cut, taker);
    run_slots(p, at, owners, chunks, streaming);
  });
}

void add_kernels(UnpermuteWithEpGradKernels& kernels) {
  for_each_target([&](const Target& target) {
    if (!HWY_DISPATCH_TABLE(vectors_fit_stripes)[target.index]()) return;  // SVE of 2048 bits
    const auto run = HWY_DISPATCH_TABLE(run_unpermute_grad)[target.index];
    kernels.push_back({target.name, refuses, workspace_bytes, bound_to<Problem, Pointers>(run),
                       target.wide == WideVectors::kSlow ? is_short_call : nullptr});
  });
  kernels.push_back(portable_unpermute_with_ep_grad());
}

}  // namespace moe::cpu
#endif  // HWY_ONCE
