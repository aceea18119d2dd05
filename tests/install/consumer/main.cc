// A program outside the project: one right answer, and one exception across the library's border.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "moe/moe.h"

using moe::DType, moe::PermuteWithEpGrad, moe::TensorDesc;

namespace {

void check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

PermuteWithEpGrad::Args args_for(std::initializer_list<int64_t> rows_shape) {
  return {.permuted_tokens_grad = TensorDesc::contiguous(DType::kF32, rows_shape),
          .sorted_indices = TensorDesc::contiguous(DType::kI32, {6}),
          .top_k = 2,
          .ep_range = moe::EpRange{1, 5},
          .tokens_grad = TensorDesc::contiguous(DType::kF32, {3, 2})};
}

bool throws_invalid_argument() {
  try {
    PermuteWithEpGrad::plan(args_for({3, 2}));
  } catch (const moe::InvalidArgument& error) {
    return error.argument() == "permuted_tokens_grad";
  }
  return false;
}

}  // namespace

int main() {
  const std::vector<float> rows = {2, 2, 1, 1, 3, 3, 2, 2};
  const std::vector<int> indices = {2, 0, 4, 1, 5, 3};
  std::vector<float> tokens_grad(6, -1);
  const PermuteWithEpGrad plan = PermuteWithEpGrad::plan(args_for({4, 2}));
  std::vector<char> workspace(plan.workspace_bytes());
  plan.bind({.permuted_tokens_grad = rows.data(),
             .sorted_indices = indices.data(),
             .tokens_grad = tokens_grad.data()})
      .run(workspace.data());
  check(tokens_grad == std::vector<float>{1, 1, 4, 4, 3, 3}, "the worked example");
  check(throws_invalid_argument(), "too few rows are rejected by name");
  std::puts("ok");
}
