// The C++ side of bench/python_overhead.py, which loads this library into its own process: the four
// operators on its own arrays, timed here, so that both sides see the same memory.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "moe/moe.h"

namespace moe::bench {
namespace {

// Seconds of one call, the best of `num_batches` batches of `batch` calls.
template <class Fn>
double best_time(int num_batches, int batch, Fn&& fn) {
  double best = 1e9;
  for (int i = 0; i < num_batches; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    for (int j = 0; j < batch; ++j) fn();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    best = std::min(best, seconds.count() / batch);
  }
  return best;
}

void run(const BoundCall& call) {
  std::vector<char> workspace(call.workspace_bytes());
  call.run(workspace.data());
}

// All rows of contiguous arrays; probs are float32, indices int32.
struct Problem {
  DType dtype;
  int64_t num_tokens, top_k, hidden_size;

  int64_t num_slots() const { return num_tokens * top_k; }
  TensorDesc tokens() const { return TensorDesc::contiguous(dtype, {num_tokens, hidden_size}); }
  TensorDesc rows() const { return TensorDesc::contiguous(dtype, {num_slots(), hidden_size}); }
  TensorDesc slots(DType type) const { return TensorDesc::contiguous(type, {num_slots()}); }
  TensorDesc pairs(DType type) const { return TensorDesc::contiguous(type, {num_tokens, top_k}); }
};

// In the order of the Python function's inputs, then its outputs.
BoundCall permute(const Problem& p, void* const* a) {
  return PermuteWithEp::plan({.tokens = p.tokens(),
                              .indices = p.pairs(DType::kI32),
                              .probs = p.pairs(DType::kF32),
                              .permuted_tokens = p.rows(),
                              .sorted_indices = p.slots(DType::kI32),
                              .permuted_probs = p.slots(DType::kF32)})
      .bind({a[0], a[1], a[2], a[3], a[4], a[5], nullptr});
}

BoundCall permute_grad(const Problem& p, void* const* a) {
  return PermuteWithEpGrad::plan({.permuted_tokens_grad = p.rows(),
                                  .sorted_indices = p.slots(DType::kI32),
                                  .permuted_probs_grad = p.slots(DType::kF32),
                                  .top_k = p.top_k,
                                  .tokens_grad = p.tokens(),
                                  .probs_grad = p.pairs(DType::kF32)})
      .bind({a[0], a[1], a[2], a[3], a[4]});
}

BoundCall unpermute(const Problem& p, void* const* a) {
  return UnpermuteWithEp::plan({.permuted_tokens = p.rows(),
                                .sorted_indices = p.slots(DType::kI32),
                                .probs = p.pairs(DType::kF32),
                                .top_k = p.top_k,
                                .out = p.tokens()})
      .bind({a[0], a[1], a[2], a[3]});
}

BoundCall unpermute_grad(const Problem& p, void* const* a) {
  return UnpermuteWithEpGrad::plan({.unpermuted_tokens_grad = p.tokens(),
                                    .sorted_indices = p.slots(DType::kI32),
                                    .permuted_tokens = p.rows(),
                                    .probs = p.pairs(DType::kF32),
                                    .top_k = p.top_k,
                                    .permuted_tokens_grad = p.rows(),
                                    .probs_grad = p.pairs(DType::kF32)})
      .bind({a[0], a[1], a[2], a[3], a[4], a[5]});
}

constexpr BoundCall (*kOperators[])(const Problem&, void* const*) = {permute, permute_grad,
                                                                     unpermute, unpermute_grad};

}  // namespace
}  // namespace moe::bench

// `op` counts the operators as kOperators does. `with_plan`: the whole way, as Python goes it, from
// the arguments on; otherwise only the run of a call that is planned and bound. Seconds of one
// call.
extern "C" MOE_API double moe_bench_call(int op, int dtype, int64_t num_tokens, int64_t top_k,
                                         int64_t hidden_size, void* const* addresses,
                                         bool with_plan, int num_batches, int batch) {
  using namespace moe::bench;
  const Problem problem{static_cast<moe::DType>(dtype), num_tokens, top_k, hidden_size};
  const auto bound = [&] { return kOperators[op](problem, addresses); };
  if (with_plan) return best_time(num_batches, batch, [&] { run(bound()); });
  const moe::BoundCall call = bound();
  return best_time(num_batches, batch, [&] { run(call); });
}

extern "C" MOE_API void moe_bench_set_num_threads(int n) { moe::set_num_threads(n); }
