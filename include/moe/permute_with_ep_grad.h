// PermuteWithEpGrad: the gradient of the token permutation under an expert-parallel window.
//
//   tokens_grad[t]   = sum over k of (begin <= s < end ? permuted_tokens_grad[s - begin] : 0)
//   probs_grad[t, k] =               (begin <= s < end ? permuted_probs_grad[s - begin]  : 0)
//   with s = sorted_indices[t * top_k + k]
//
// Source: the public page of aclnnMoeTokenPermuteWithEpGrad, and docs/ops/permute_with_ep_grad.md
// where that page is silent.
//
// Sums are taken in float32 (float64 for float64), in ascending k, and rounded once to nearest
// even. Slots outside the window take part as +0. Results are the same bits for any number of
// threads, instruction set, and floating-point mode of the caller (NaN payloads excepted). Rows
// outside the window are never read. Every element of every output is written, always.
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
class MOE_API PermuteWithEpGrad {
 public:
  // T num_tokens, K top_k, H hidden_size, L = T*K slots, R = end - begin rows of the window.
  struct Args {
    // in  [rows, H], rows >= R; float32, float16, bfloat16 or float64. Any strides and offset.
    TensorDesc permuted_tokens_grad{};
    // in  [L]; int32 or int64: the global row of each slot. What lies outside the window
    // contributes zero, whatever its value.
    TensorDesc sorted_indices{};
    // in  [rows], rows >= R, optional; its dtype may differ from the tokens', but float64 goes with
    // float64 only.
    std::optional<TensorDesc> permuted_probs_grad{};
    int64_t top_k = 1;
    // 0 <= begin <= end <= L. Absent: [0, rows) with the rows of permuted_tokens_grad, which makes
    // this PermuteGrad; permuted_probs_grad then needs as many rows.
    std::optional<EpRange> ep_range{};
    // out [T, H], contiguous, dtype of permuted_tokens_grad.
    TensorDesc tokens_grad{};
    // out [T, K], contiguous, dtype of permuted_probs_grad. Given exactly when that is given.
    std::optional<TensorDesc> probs_grad{};
    // The checked mode: run() first verifies that sorted_indices holds each value at most once and
    // nothing outside [0, L), and throws IndexError with the outputs untouched where it does not.
    // Adds ceil(L / 8) bytes to the workspace.
    bool check_indices = false;
  };

  // Base addresses, before the descriptions' offsets. Tensors without elements may be null.
  struct Pointers {
    const void* permuted_tokens_grad = nullptr;
    const void* sorted_indices = nullptr;
    const void* permuted_probs_grad = nullptr;
    void* tokens_grad = nullptr;
    void* probs_grad = nullptr;
  };

  // Checks everything that needs no address, chooses the kernel. Throws InvalidArgument.
  static PermuteWithEpGrad plan(const Args& args, const Engine& engine = {});

  // Copies share the plan. A move is a copy too, so what it leaves behind is still a plan.
  PermuteWithEpGrad(const PermuteWithEpGrad&) = default;
  PermuteWithEpGrad& operator=(const PermuteWithEpGrad&) = default;

  // Checks the addresses: NullArgument where one is missing, InvalidArgument where an output
  // overlaps an input or another output.
  BoundCall bind(const Pointers& pointers) const;

  // At most 1 MiB, and ceil(L / 8) bytes more in the checked mode. Usually 0.
  size_t workspace_bytes() const noexcept;
  // The kernel that runs, for instance "portable".
  std::string kernel_name() const;
  // What each kernel said of this case, in the order asked, a line each: for people, not programs.
  std::string explain() const;

  // The kernels that this machine can run, fastest first: what Engine::kernel may name.
  static std::vector<std::string> kernel_names();

 private:
  struct State;
  explicit PermuteWithEpGrad(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace moe
