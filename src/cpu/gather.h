// Sums of rows that slots name, token by token: what PermuteWithEpGrad and UnpermuteWithEp are to
// their kernels. All that can be decided before a run is decided when addresses are bound: a call
// that moves little takes about as long to read its code from memory as to read its rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/dtypes.h"
#include "core/fp_mode.h"
#include "cpu/cut.h"
#include "cpu/processor.h"
#include "cpu/slots.h"
#include "cpu/tuning.h"
#include "moe/engine.h"
#include "moe/tensor.h"
#include "ops/kernel.h"

namespace moe::cpu {

// What is summed: for each token the rows of the window that its slots name, of each row
// `row_bytes` from `input` on; and the numbers that are copied beside them.
struct Gather {
  int64_t num_tokens;
  DType dtype;
  SlotSource slots;
  bool weighted;         // by slots.weights
  const uint8_t* input;  // row 0 of the window
  int64_t input_step;    // bytes from row to row
  int64_t row_bytes;
  uint8_t* out;  // token 0
  int64_t out_step;
  // One number per row that goes to its slot, and 0 to slots outside; none where `probs_out` is
  // null.
  DType probs_dtype{};
  const void* probs = nullptr;
  int64_t probs_step = 0;  // bytes from row to row
  void* probs_out = nullptr;
  // What follows from all that: gather_call knows.
  double rows_per_token = 0;  // of the window, on average
  int64_t far_rows = 0;       // how many rows before its turn one is asked for first; 0: never
};

// What a token reads that has rows, on average.
inline double bytes_per_token(double rows_per_token, int64_t row_bytes) {
  return std::max(1.0, rows_per_token) * static_cast<double>(row_bytes);
}

// Sums the tokens and the parts of their rows that a worker's chunks name.
using GatherChunks = void(const Gather&, Chunks&);

// The fastest of an instruction set, for rows whose parts have `part_bytes`, the last one perhaps
// less. `streaming`: stores that pass the caches by pay off.
using ChooseGather = GatherChunks*(const Gather&, int64_t part_bytes, bool streaming);

struct GatherTarget {
  const char* name;
  ChooseGather* choose;
  WideVectors wide;
};

// Those of this machine, best first.
std::vector<GatherTarget> gather_targets();

// How it runs.
struct GatherRun {
  int num_threads;     // at most
  bool check_indices;  // before anything is written
  size_t workspace_bytes;
  ChooseGather* choose;
};

// The call; what follows from the rest of `gather` is filled in.
std::shared_ptr<const Call> gather_call(Gather gather, const GatherRun& how);

// Whether so little is read and written that AVX2 is faster where vectors of 512 bits begin slowly.
template <class Problem>
bool is_short_gather(const Problem& p) {
  const FpMode mode;  // the caller's may trap
  const double rows =
      static_cast<double>(p.num_tokens) + static_cast<double>(p.window.end - p.window.begin);
  return rows * static_cast<double>(p.hidden_size * dtype_bytes(p.tokens_dtype)) < kShortSumBytes;
}

// Whether a later kernel is faster; null: never.
template <class Problem>
auto slower_gathers(WideVectors wide) -> bool (*)(const Problem&) {
  switch (wide) {
    case WideVectors::kFree:
      return nullptr;
    case WideVectors::kSlowStart:
      return is_short_gather<Problem>;
    case WideVectors::kSlow:
      break;
  }
  return [](const Problem&) { return true; };
}

// Adds a kernel for each instruction set; gather_of says what a problem's addresses are to sum.
template <class Problem, class Pointers>
void add_gather_kernels(KernelList<Problem, Pointers>& kernels,
                        std::string (*refuses)(const Problem&),
                        size_t (*workspace_bytes)(const Problem&),
                        Gather (*gather_of)(const Problem&, const Pointers&)) {
  for (const auto& [name, choose, wide] : gather_targets()) {
    const auto bind = [choose = choose, gather_of](const Problem& p, const Pointers& at,
                                                   size_t bytes) {
      return gather_call(gather_of(p, at), {p.num_threads, p.check_indices, bytes, choose});
    };
    kernels.push_back({name, refuses, workspace_bytes, bind, slower_gathers<Problem>(wide)});
  }
}

}  // namespace moe::cpu
