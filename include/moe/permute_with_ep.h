// PermuteWithEp: the token permutation under an expert-parallel window: what one rank receives.
//
//   order                = stable argsort of the flattened indices, unrouted slots last
//   permuted_tokens[r]   = tokens[order[begin + r] / top_k]      for r in [0, R)
//   permuted_probs[r]    = probs_flat[order[begin + r]]          for r in [0, R)
//   sorted_indices       = inverse of order: the global row of every slot, never sliced
//
// Source: the public page of aclnnMoeTokenPermuteWithEp, and docs/ops/permute_with_ep.md where that
// page is silent. Which slots are routed: see moe/sort_by_expert.h, whose results these are.
//
// Copies are bit-exact. Results are the same for any number of threads and any instruction set.
// Rows of the outputs at or beyond R are zeros. Every element of every output is written, always.
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
class MOE_API PermuteWithEp {
 public:
  // T num_tokens, K top_k, H hidden_size, L = T*K slots, E = num_experts, R = end - begin rows of
  // the window.
  struct Args {
    // in  [T, H]; float32, float16, bfloat16 or float64. Any strides and offset.
    TensorDesc tokens{};
    // in  [T, K], or [T] for K = 1; int32 or int64: the expert of each slot, L at most 2^56. Any
    // strides.
    TensorDesc indices{};
    // in  [T, K], or [T] for K = 1, optional; its dtype may differ from the tokens', but float64
    // goes with float64 only. Any strides.
    std::optional<TensorDesc> probs{};
    // 0 <= begin <= end <= L. Absent: [0, min(rows, L)) with the rows of permuted_tokens, which
    // makes this Permute.
    std::optional<EpRange> ep_range{};
    // 0 <= E <= 2^31. Absent: any ids, however sparse.
    std::optional<int64_t> num_experts{};
    // out [rows, H], rows >= R, contiguous, dtype of tokens.
    TensorDesc permuted_tokens{};
    // out [L], contiguous; int32, or int64, which L of 2^31 and more needs.
    TensorDesc sorted_indices{};
    // out [rows], rows >= R, contiguous, dtype of probs. Given exactly when that is given.
    std::optional<TensorDesc> permuted_probs{};
    // out [E], contiguous, optional; int32 or int64: the slots that name each expert. Needs
    // num_experts.
    std::optional<TensorDesc> tokens_per_expert{};
    // The checked mode: run() first verifies that every slot is routed, and throws IndexError with
    // the outputs untouched where one is not.
    bool check_indices = false;
  };

  // Base addresses, before the descriptions' offsets. Tensors without elements may be null.
  struct Pointers {
    const void* tokens = nullptr;
    const void* indices = nullptr;
    const void* probs = nullptr;
    void* permuted_tokens = nullptr;
    void* sorted_indices = nullptr;
    void* permuted_probs = nullptr;
    void* tokens_per_expert = nullptr;
  };

  // Checks everything that needs no address, chooses the kernel. Throws InvalidArgument.
  static PermuteWithEp plan(const Args& args, const Engine& engine = {});

  // Copies share the plan. A move is a copy too, so what it leaves behind is still a plan.
  PermuteWithEp(const PermuteWithEp&) = default;
  PermuteWithEp& operator=(const PermuteWithEp&) = default;

  // Checks the addresses: NullArgument where one is missing, InvalidArgument where an output
  // overlaps an input or another output.
  BoundCall bind(const Pointers& pointers) const;

  // What SortByExpert needs for the same indices, and nothing more.
  size_t workspace_bytes() const noexcept;
  // The kernel that runs, for instance "portable".
  std::string kernel_name() const;
  // What each kernel said of this case, in the order asked, a line each: for people, not programs.
  std::string explain() const;

  // The kernels that this machine can run, fastest first: what Engine::kernel may name.
  static std::vector<std::string> kernel_names();

 private:
  struct State;
  explicit PermuteWithEp(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace moe
