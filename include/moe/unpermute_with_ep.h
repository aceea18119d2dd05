// UnpermuteWithEp: the experts' rows back to their tokens, weighted, under an expert-parallel
// window.
//
//   out[t] = sum over k of (begin <= s < end ? permuted_tokens[s - begin] * probs[t, k] : 0)
//   with s = sorted_indices[t * top_k + k]; without probs every weight is 1
//
// Source: docs/ops/unpermute_with_ep.md.
//
// Products and sums are taken in float32 (float64 for float64) and round separately, in ascending
// k; the result rounds once more, to nearest even. A slot whose prob is exactly 0 counts as outside
// the window: it contributes +0, and its row is not read. Results are the same bits for any number
// of threads, instruction set, and floating-point mode of the caller (NaN payloads excepted). Rows
// outside the window are never read. Every element of the output is written, always.
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
class MOE_API UnpermuteWithEp {
 public:
  // T num_tokens, K top_k, H hidden_size, L = T*K slots, R = end - begin rows of the window.
  struct Args {
    // in  [rows, H], rows >= R; float32, float16, bfloat16 or float64. Any strides and offset.
    TensorDesc permuted_tokens{};
    // in  [L], L at most 2^56; int32 or int64: the global row of each slot. What lies outside the
    // window contributes zero, whatever its value.
    TensorDesc sorted_indices{};
    // in  [T, K], optional; any strides and offset. Its dtype may differ from the tokens', but
    // float64 goes with float64 only.
    std::optional<TensorDesc> probs{};
    int64_t top_k = 1;
    // 0 <= begin <= end <= L. Absent: [0, rows), which makes this Unpermute.
    std::optional<EpRange> ep_range{};
    // out [T, H], contiguous, dtype of permuted_tokens.
    TensorDesc out{};
    // The checked mode: run() first verifies that sorted_indices holds each value at most once and
    // nothing outside [0, L), and throws IndexError with the output untouched where it does not.
    // Adds ceil(L / 8) bytes to the workspace.
    bool check_indices = false;
  };

  // Base addresses, before the descriptions' offsets. Tensors without elements may be null.
  struct Pointers {
    const void* permuted_tokens = nullptr;
    const void* sorted_indices = nullptr;
    const void* probs = nullptr;
    void* out = nullptr;
  };

  // Checks everything that needs no address, chooses the kernel. Throws InvalidArgument.
  static UnpermuteWithEp plan(const Args& args, const Engine& engine = {});

  // Copies share the plan. A move is a copy too, so what it leaves behind is still a plan.
  UnpermuteWithEp(const UnpermuteWithEp&) = default;
  UnpermuteWithEp& operator=(const UnpermuteWithEp&) = default;

  // Checks the addresses: NullArgument where one is missing, InvalidArgument where the output
  // overlaps an input.
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
  explicit UnpermuteWithEp(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace moe
