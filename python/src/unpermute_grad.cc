#include "arguments.h"
#include "array.h"
#include "moe/unpermute_with_ep_grad.h"
#include "ops.h"
#include "outputs.h"
#include "run.h"

namespace moe::python {
namespace {

constexpr Name kNames[] = {{"permuted_tokens_grad", "out[0] (permuted_tokens_grad)"},
                           {"probs_grad", "out[1] (probs_grad)"},
                           {"unpermuted_tokens_grad", "tokens_grad"}};

}  // namespace

nb::object unpermute_grad(nb::handle tokens_object, nb::handle indices_object,
                          nb::handle permuted_tokens_object, nb::handle probs_object,
                          nb::handle top_k, nb::handle ep_range_object, nb::handle out,
                          bool check_indices, bool allow_grad) {
  const Array tokens_grad =
      required(tokens_object, {.name = "tokens_grad", .allow_grad = allow_grad});
  const Array sorted_indices =
      required(indices_object, {.name = "sorted_indices", .elements = Elements::kIndices});
  const Array permuted_tokens(permuted_tokens_object,
                              {.name = "permuted_tokens", .allow_grad = allow_grad});
  const Array probs(probs_object, {.name = "probs", .allow_grad = allow_grad});
  const int64_t k = top_k_of(top_k, probs);
  const std::optional<EpRange> ep_range = to_ep_range(ep_range_object);
  const auto given = split_outputs(out, 2);
  Output rows_grad(given[0], kNames[0].python);
  Output probs_grad(given[1], kNames[1].python);

  const int64_t num_rows =
      permuted_tokens ? permuted_tokens.size(0) : window_rows(ep_range, sorted_indices.size(0));
  rows_grad.expect(tokens_grad.desc().dtype, {num_rows, tokens_grad.size(1)});
  if (probs && permuted_tokens) {
    probs_grad.expect(probs.desc().dtype, {probs.size(0), probs.size(1)});
  }

  return in_python_words(kNames, [&] {
    const UnpermuteWithEpGrad plan =
        UnpermuteWithEpGrad::plan({.unpermuted_tokens_grad = tokens_grad.desc(),
                                   .sorted_indices = sorted_indices.desc(),
                                   .permuted_tokens = permuted_tokens.given(),
                                   .probs = probs.given(),
                                   .top_k = k,
                                   .ep_range = ep_range,
                                   .permuted_tokens_grad = *rows_grad.desc(),
                                   .probs_grad = probs_grad.desc(),
                                   .check_indices = check_indices});
    rows_grad.allocate(tokens_grad.family());
    probs_grad.allocate(tokens_grad.family());
    run_released(plan.bind({.unpermuted_tokens_grad = tokens_grad.data(),
                            .sorted_indices = sorted_indices.data(),
                            .permuted_tokens = permuted_tokens.data(),
                            .probs = probs.data(),
                            .permuted_tokens_grad = rows_grad.data(),
                            .probs_grad = probs_grad.data()}));
    return nb::make_tuple(rows_grad.take(), probs_grad.take());
  });
}

}  // namespace moe::python
