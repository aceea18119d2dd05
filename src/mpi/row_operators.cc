#include "mpi/row_operators.h"

#include <cstddef>
#include <memory>

#include "moe/moe.h"

namespace moe::mpi {
namespace {

TensorDesc matrix(const RowType& row, int64_t num_rows) {
  return TensorDesc::contiguous(row.dtype, {num_rows, row.size});
}

TensorDesc ints(int64_t size) { return TensorDesc::contiguous(DType::kI32, {size}); }

int64_t size_of(EpRange window) { return window.end - window.begin; }

std::optional<TensorDesc> describe(const Weights& weights, const PlacedSlots& slots) {
  if (!weights.dtype) return std::nullopt;
  return TensorDesc::contiguous(*weights.dtype, {slots.num_tokens, slots.width});
}

template <class Plan>
void run(const Plan& plan, const typename Plan::Pointers& pointers) {
  const auto workspace = std::make_unique_for_overwrite<std::byte[]>(plan.workspace_bytes());
  plan.bind(pointers).run(workspace.get());
}

}  // namespace

void sort(const NamedSlots& slots, int32_t* sorted_indices, int64_t* tokens_per_id,
          const Engine& engine) {
  run(SortByExpert::plan(
          {.indices = TensorDesc::contiguous(DType::kI32, {slots.num_tokens, slots.width}),
           .num_experts = slots.num_ids,
           .sorted_indices = ints(slots.num_tokens * slots.width),
           .tokens_per_expert = TensorDesc::contiguous(DType::kI64, {slots.num_ids})},
          engine),
      {.indices = slots.indices,
       .sorted_indices = sorted_indices,
       .tokens_per_expert = tokens_per_id});
}

void permute(const RowType& row, const void* tokens, const NamedSlots& slots, EpRange window,
             void* rows, const Engine& engine) {
  const int64_t num_slots = slots.num_tokens * slots.width;
  // The operator makes the indices once more, a fraction of what moving the rows takes.
  const auto sorted_indices =
      std::make_unique_for_overwrite<int32_t[]>(static_cast<size_t>(num_slots));
  run(PermuteWithEp::plan(
          {.tokens = matrix(row, slots.num_tokens),
           .indices = TensorDesc::contiguous(DType::kI32, {slots.num_tokens, slots.width}),
           .ep_range = window,
           .num_experts = slots.num_ids,
           .permuted_tokens = matrix(row, size_of(window)),
           .sorted_indices = ints(num_slots)},
          engine),
      {.tokens = tokens,
       .indices = slots.indices,
       .permuted_tokens = rows,
       .sorted_indices = sorted_indices.get()});
}

void add_rows(const RowType& row, const void* rows, const PlacedSlots& slots, void* tokens,
              const Engine& engine) {
  run(PermuteWithEpGrad::plan({.permuted_tokens_grad = matrix(row, size_of(slots.window)),
                               .sorted_indices = ints(slots.num_tokens * slots.width),
                               .top_k = slots.width,
                               .ep_range = slots.window,
                               .tokens_grad = matrix(row, slots.num_tokens)},
                              engine),
      {.permuted_tokens_grad = rows,
       .sorted_indices = slots.sorted_indices,
       .tokens_grad = tokens});
}

void unpermute(const RowType& row, const void* rows, const PlacedSlots& slots,
               const Weights& weights, void* tokens, const Engine& engine) {
  run(UnpermuteWithEp::plan({.permuted_tokens = matrix(row, size_of(slots.window)),
                             .sorted_indices = ints(slots.num_tokens * slots.width),
                             .probs = describe(weights, slots),
                             .top_k = slots.width,
                             .ep_range = slots.window,
                             .out = matrix(row, slots.num_tokens)},
                            engine),
      {.permuted_tokens = rows,
       .sorted_indices = slots.sorted_indices,
       .probs = weights.probs,
       .out = tokens});
}

void unpermute_grad(const RowType& row, const void* tokens_grad, const PlacedSlots& slots,
                    const void* rows, const Weights& weights, void* rows_grad, void* probs_grad,
                    const Engine& engine) {
  const TensorDesc rows_desc = matrix(row, size_of(slots.window));
  run(UnpermuteWithEpGrad::plan(
          {.unpermuted_tokens_grad = matrix(row, slots.num_tokens),
           .sorted_indices = ints(slots.num_tokens * slots.width),
           .permuted_tokens = weights.dtype ? std::optional(rows_desc) : std::nullopt,
           .probs = describe(weights, slots),
           .top_k = slots.width,
           .ep_range = slots.window,
           .permuted_tokens_grad = rows_desc,
           .probs_grad = describe(weights, slots)},
          engine),
      {.unpermuted_tokens_grad = tokens_grad,
       .sorted_indices = slots.sorted_indices,
       .permuted_tokens = weights.dtype ? rows : nullptr,
       .probs = weights.probs,
       .permuted_tokens_grad = rows_grad,
       .probs_grad = probs_grad});
}

}  // namespace moe::mpi
