// One case of an operator with its data, ready to be measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "floor/floor.h"
#include "memory.h"
#include "moe/moe.h"
#include "shapes.h"

namespace moe::bench {

// Buffers that all cases share, so that a page is faulted in once. Tokens and rows stand for
// whatever the operator has of them, with gradients or without.
struct Memory {
  Buffer rows{Buffer::Content::kValues, 0};
  Buffer probs{Buffer::Content::kValues, 17 * 64};
  Buffer indices{Buffer::Content::kZeros, 34 * 64};
  Buffer tokens_grad{Buffer::Content::kZeros, 51 * 64};
  Buffer probs_grad{Buffer::Content::kZeros, 68 * 64};
  Buffer tokens{Buffer::Content::kValues, 85 * 64};
  Buffer permuted_tokens{Buffer::Content::kZeros, 102 * 64};
  Buffer permuted_probs{Buffer::Content::kZeros, 119 * 64};
  Buffer sorted_indices{Buffer::Content::kZeros, 136 * 64};
  Buffer settle{Buffer::Content::kZeros, 0};
};

// One case of an operator with its data: the call to measure, and the bytes that it must move.
class OpProblem {
 public:
  virtual ~OpProblem() = default;

  virtual BoundCall bind() const = 0;
  virtual std::string kernel_name() const = 0;
  // The bytes that any implementation must move.
  virtual std::vector<Transfer> transfers() const = 0;
  // The output of the operator that a consumer reads next.
  virtual const std::byte* output() const = 0;
  virtual int64_t output_bytes() const = 0;
  // Poisons the outputs, runs the call, and throws std::runtime_error where an answer is wrong.
  virtual void check(const BoundCall& call) const = 0;
  // A part of the call that moves other bytes than `transfers`, by itself: its time is reported
  // apart and taken off the operator's. An empty call where there is none.
  virtual BoundCall part_apart() const { return {}; }

  int64_t bytes_moved() const;
};

}  // namespace moe::bench
