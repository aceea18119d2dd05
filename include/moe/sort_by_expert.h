// SortByExpert: the index stage of the token permutation, by itself.
//
//   order             = stable argsort of the flattened indices, unrouted slots last in slot order
//   sorted_indices[i] = the place of slot i in that order: order[sorted_indices[i]] == i
//   tokens_per_expert[e] = how many slots name expert e
//
// A slot is not routed when its id is negative, at or past num_experts where that is given, or past
// 2^31 - 1. Such slots form one last group and count for no expert.
//
// Source: what the public pages of aclnnMoeTokenPermute and aclnnMoeTokenPermuteWithEp say of
// sortedIndicesOut, and docs/ops/sort_by_expert.md where they are silent.
//
// Results are the same for any number of threads. Every element of every output is written, always.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "moe/engine.h"
#include "moe/error.h"
#include "moe/export.h"
#include "moe/tensor.h"

namespace moe {

// A checked, immutable plan; reusable for any addresses, from any thread.
class MOE_API SortByExpert {
 public:
  // T num_tokens, K top_k, L = T*K slots, E = num_experts.
  struct Args {
    // in  [T, K], or [T] for K = 1; int32 or int64: the expert of each slot. Any strides and
    // offset; L at most 2^56.
    TensorDesc indices{};
    // 0 <= E <= 2^31. Absent: any ids, however sparse.
    std::optional<int64_t> num_experts{};
    // out [L], contiguous; int32, or int64, which L of 2^31 and more needs.
    TensorDesc sorted_indices{};
    // out [E], contiguous, optional; int32 or int64 like sorted_indices. Needs num_experts.
    std::optional<TensorDesc> tokens_per_expert{};
    // The checked mode: run() first verifies that every slot is routed, and throws IndexError with
    // the outputs untouched where one is not.
    bool check_indices = false;
  };

  // Base addresses, before the descriptions' offsets. Tensors without elements may be null.
  struct Pointers {
    const void* indices = nullptr;
    void* sorted_indices = nullptr;
    void* tokens_per_expert = nullptr;
  };

  // Checks everything that needs no address. Throws InvalidArgument.
  static SortByExpert plan(const Args& args, const Engine& engine = {});

  // Copies share the plan. A move is a copy too, so what it leaves behind is still a plan.
  SortByExpert(const SortByExpert&) = default;
  SortByExpert& operator=(const SortByExpert&) = default;

  // Checks the addresses: NullArgument where one is missing, InvalidArgument where an output
  // overlaps an input or another output.
  BoundCall bind(const Pointers& pointers) const;

  // In elements of sorted_indices: E + 1 for each thread that the case is worth (and 128 bytes to
  // keep threads apart), or, without num_experts and where experts far outnumber slots, 3 * L.
  size_t workspace_bytes() const noexcept;
  // "portable": this operator moves integers one by one, the same way on every instruction set. It
  // answers to their names too, so that MOE_KERNEL may force one for all operators.
  std::string kernel_name() const;
  // What each kernel said of this case, a line each: for people, not programs.
  std::string explain() const;

  static std::vector<std::string> kernel_names();

 private:
  struct State;
  explicit SortByExpert(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace moe
