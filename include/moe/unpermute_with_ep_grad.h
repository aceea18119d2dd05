// UnpermuteWithEpGrad: the gradient of the weighted way back under an expert-parallel window.
//
//   permuted_tokens_grad[s - begin] = unpermuted_tokens_grad[t] * probs[t, k]
//       for every slot in the window whose prob is not 0; every other row is +0
//   probs_grad[t, k] =
//       begin <= s < end ? dot(permuted_tokens[s - begin], unpermuted_tokens_grad[t]) : 0
//   with s = sorted_indices[t * top_k + k]; without probs every weight is 1
//
// Source: docs/ops/unpermute_with_ep_grad.md.
//
// Products are taken in float32 (float64 for float64) and rounded once to nearest even. The dot
// product has one order everywhere: 64 partial sums that start at +0, of which partial p takes the
// elements h with h mod 64 == p in ascending h, product rounded, then added; then partial p gets
// partial p+32 added, +16, +8, +4, +2, +1; and the result rounds once more. So results are the same
// bits for any number of threads, instruction set, and floating-point mode of the caller (NaN
// payloads excepted). Rows outside the window are never read. Every element of every output is
// written, always.
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
class MOE_API UnpermuteWithEpGrad {
 public:
  // T num_tokens, K top_k, H hidden_size, L = T*K slots, R rows of the window.
  struct Args {
    // in  [T, H]; float32, float16, bfloat16 or float64. Any strides and offset.
    TensorDesc unpermuted_tokens_grad{};
    // in  [L], L at most 2^56; int32 or int64: the global row of each slot. Two slots that name the
    // same row of the window are invalid: which of them that row belongs to is then not specified.
    TensorDesc sorted_indices{};
    // in  [rows, H], optional; dtype of unpermuted_tokens_grad. Any strides and offset. Read only
    // for probs_grad, and then also where a prob is 0.
    std::optional<TensorDesc> permuted_tokens{};
    // in  [T, K], optional; any strides and offset. Its dtype may differ from the tokens', but
    // float64 goes with float64 only.
    std::optional<TensorDesc> probs{};
    int64_t top_k = 1;
    // 0 <= begin <= end <= L. Absent: [0, min(rows, L)), which makes this UnpermuteGrad.
    std::optional<EpRange> ep_range{};
    // out [rows, H], rows >= R, contiguous, dtype of unpermuted_tokens_grad; as many rows as
    // permuted_tokens where that is given. Rows at or beyond R are zeros.
    TensorDesc permuted_tokens_grad{};
    // out [T, K], optional, contiguous, dtype of probs. Needs probs and permuted_tokens.
    std::optional<TensorDesc> probs_grad{};
    // The checked mode: run() first verifies that sorted_indices holds each value at most once and
    // nothing outside [0, L), and throws IndexError with the outputs untouched where it does not.
    bool check_indices = false;
  };

  // Base addresses, before the descriptions' offsets. Tensors without elements may be null.
  struct Pointers {
    const void* unpermuted_tokens_grad = nullptr;
    const void* sorted_indices = nullptr;
    const void* permuted_tokens = nullptr;
    const void* probs = nullptr;
    void* permuted_tokens_grad = nullptr;
    void* probs_grad = nullptr;
  };

  // Checks everything that needs no address, chooses the kernel. Throws InvalidArgument.
  static UnpermuteWithEpGrad plan(const Args& args, const Engine& engine = {});

  // Copies share the plan. A move is a copy too, so what it leaves behind is still a plan.
  UnpermuteWithEpGrad(const UnpermuteWithEpGrad&) = default;
  UnpermuteWithEpGrad& operator=(const UnpermuteWithEpGrad&) = default;

  // Checks the addresses: NullArgument where one is missing, InvalidArgument where an output
  // overlaps an input or another output.
  BoundCall bind(const Pointers& pointers) const;

  // 4 * R bytes (8 * R where L is 2^31 or more), in the checked mode at least ceil(L / 8).
  size_t workspace_bytes() const noexcept;
  // The kernel that runs, for instance "portable".
  std::string kernel_name() const;
  // What each kernel said of this case, in the order asked, a line each: for people, not programs.
  std::string explain() const;

  // The kernels that this machine can run, fastest first: what Engine::kernel may name.
  static std::vector<std::string> kernel_names();

 private:
  struct State;
  explicit UnpermuteWithEpGrad(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace moe
