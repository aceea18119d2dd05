#include "arguments.h"
#include "array.h"
#include "moe/permute_with_ep_grad.h"
#include "ops.h"
#include "outputs.h"
#include "run.h"

namespace moe::python {
namespace {

constexpr Name kNames[] = {{"tokens_grad", "out[0] (tokens_grad)"},
                           {"probs_grad", "out[1] (probs_grad)"}};

}  // namespace

nb::object permute_grad(nb::handle tokens_object, nb::handle indices_object, nb::handle top_k,
                        nb::handle probs_object, nb::handle ep_range, nb::handle out,
                        bool check_indices, bool allow_grad) {
  const Array rows =
      required(tokens_object, {.name = "permuted_tokens_grad", .allow_grad = allow_grad});
  const Array sorted_indices =
      required(indices_object, {.name = "sorted_indices", .elements = Elements::kIndices});
  const Array probs(probs_object, {.name = "permuted_probs_grad", .allow_grad = allow_grad});
  const int64_t k = to_int(top_k, "top_k");
  const auto given = split_outputs(out, 2);
  Output tokens_grad(given[0], kNames[0].python);
  Output probs_grad(given[1], kNames[1].python);

  const int64_t num_tokens = tokens_of_slots(sorted_indices, k);
  tokens_grad.expect(rows.desc().dtype, {num_tokens, rows.size(1)});
  if (probs) probs_grad.expect(probs.desc().dtype, {num_tokens, k});

  return in_python_words(kNames, [&] {
    const PermuteWithEpGrad plan = PermuteWithEpGrad::plan({.permuted_tokens_grad = rows.desc(),
                                                            .sorted_indices = sorted_indices.desc(),
                                                            .permuted_probs_grad = probs.given(),
                                                            .top_k = k,
                                                            .ep_range = to_ep_range(ep_range),
                                                            .tokens_grad = *tokens_grad.desc(),
                                                            .probs_grad = probs_grad.desc(),
                                                            .check_indices = check_indices});
    tokens_grad.allocate(rows.family());
    probs_grad.allocate(rows.family());
    run_released(plan.bind({.permuted_tokens_grad = rows.data(),
                            .sorted_indices = sorted_indices.data(),
                            .permuted_probs_grad = probs.data(),
                            .tokens_grad = tokens_grad.data(),
                            .probs_grad = probs_grad.data()}));
    return nb::make_tuple(tokens_grad.take(), probs_grad.take());
  });
}

}  // namespace moe::python
