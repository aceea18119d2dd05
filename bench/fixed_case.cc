// A small case that never changes, for counting instructions: scripts/perf_gate runs it under
// callgrind, which counts inside run_fixed_case alone.
//
// usage: bench_fixed_case --toolchain | --cases | KERNEL CASE
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

#include "moe/moe.h"
#include "routing.h"

// The name that callgrind is told.
extern "C" [[gnu::noinline]] void run_fixed_case(const moe::BoundCall* call) {
  call->run();
  asm volatile("" ::: "memory");  // not a tail call: the function ends when the work has ended
}

namespace moe::bench {
namespace {

struct FixedCase {
  const char* name;
  DType dtype;
  int64_t num_tokens, top_k, hidden_size, num_ranks;
};

// One for each way through the kernel: sums of many rows, of a small window, of few rows (a rank),
// single rows, short rows.
constexpr FixedCase kCases[] = {
    {"bfloat16-k8-all", DType::kBF16, 64, 8, 2048, 1},
    {"float16-k8-all", DType::kF16, 64, 8, 2048, 1},
    {"bfloat16-k8-few", DType::kBF16, 8, 8, 2048, 1},
    {"float32-k2-all", DType::kF32, 64, 2, 2048, 1},
    {"bfloat16-k8-rank-of-8", DType::kBF16, 256, 8, 2048, 8},
    {"bfloat16-k1-all", DType::kBF16, 256, 1, 2048, 1},
    {"bfloat16-k8-256-bytes", DType::kBF16, 512, 8, 128, 1},
};

constexpr int64_t kNumExperts = 64;

void run(const char* kernel, const FixedCase& c) {
  const Routing routing = route("uniform", c.num_tokens, kNumExperts, c.top_k);
  const EpRange window = window_of_rank(routing, c.num_ranks > 1 ? 1 : 0, c.num_ranks);
  const int64_t num_rows = window.end - window.begin;
  const PermuteWithEpGrad plan = PermuteWithEpGrad::plan(
      {.permuted_tokens_grad = TensorDesc::contiguous(c.dtype, {num_rows, c.hidden_size}),
       .sorted_indices = TensorDesc::contiguous(DType::kI32, {c.num_tokens * c.top_k}),
       .permuted_probs_grad = TensorDesc::contiguous(DType::kF32, {num_rows}),
       .top_k = c.top_k,
       .ep_range = window,
       .tokens_grad = TensorDesc::contiguous(c.dtype, {c.num_tokens, c.hidden_size}),
       .probs_grad = TensorDesc::contiguous(DType::kF32, {c.num_tokens, c.top_k})},
      {.num_threads = 1, .kernel = kernel});
  const auto bytes = [&](int64_t count, DType dtype) {
    return std::vector<std::byte>(static_cast<size_t>(count * dtype_bytes(dtype)));
  };
  const auto rows = bytes(num_rows * c.hidden_size, c.dtype), probs = bytes(num_rows, DType::kF32);
  auto tokens_grad = bytes(c.num_tokens * c.hidden_size, c.dtype);
  auto probs_grad = bytes(c.num_tokens * c.top_k, DType::kF32);
  const BoundCall call = plan.bind({rows.data(), routing.sorted_indices.data(), probs.data(),
                                    tokens_grad.data(), probs_grad.data()});
  call.run();  // whatever happens once, happens here
  run_fixed_case(&call);
}

int run_main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--toolchain") == 0) {
    std::puts(MOE_BENCH_TOOLCHAIN);
    return 0;
  }
  if (argc == 2 && std::strcmp(argv[1], "--cases") == 0) {
    for (const FixedCase& c : kCases) std::puts(c.name);
    return 0;
  }
  for (const FixedCase& c : kCases) {
    if (argc != 3 || std::strcmp(argv[2], c.name) != 0) continue;
    run(argv[1], c);
    return 0;
  }
  std::fputs("usage: bench_fixed_case --toolchain | --cases | KERNEL CASE\n", stderr);
  return 2;
}

}  // namespace
}  // namespace moe::bench

int main(int argc, char** argv) {
  try {
    return moe::bench::run_main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
