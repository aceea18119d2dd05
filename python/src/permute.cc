#include "arguments.h"
#include "array.h"
#include "moe/permute_with_ep.h"
#include "ops.h"
#include "outputs.h"
#include "run.h"

namespace moe::python {
namespace {

constexpr Name kNames[] = {{"permuted_tokens", "out[0] (permuted_tokens)"},
                           {"sorted_indices", "out[1] (sorted_indices)"},
                           {"permuted_probs", "out[2] (permuted_probs)"}};

}  // namespace

nb::object permute(nb::handle tokens_object, nb::handle indices_object, nb::handle probs_object,
                   nb::handle ep_range_object, nb::handle num_experts, nb::handle out,
                   bool check_indices, bool allow_grad) {
  const Array tokens = required(tokens_object, {.name = "tokens", .allow_grad = allow_grad});
  const Array indices =
      required(indices_object, {.name = "indices", .elements = Elements::kIndices});
  const Array probs(probs_object, {.name = "probs", .allow_grad = allow_grad});
  const std::optional<EpRange> ep_range = to_ep_range(ep_range_object);
  const auto given = split_outputs(out, 3);
  Output permuted_tokens(given[0], kNames[0].python);
  Output sorted_indices(given[1], kNames[1].python);
  Output permuted_probs(given[2], kNames[2].python);

  const int64_t num_slots = slots_of(indices);
  permuted_tokens.expect(tokens.desc().dtype, {window_rows(ep_range, num_slots), tokens.size(1)});
  sorted_indices.expect(index_dtype(num_slots), {num_slots});
  // Room for the same rows, whoever made it for the tokens.
  if (probs) permuted_probs.expect(probs.desc().dtype, {permuted_tokens.desc()->shape[0]});

  return in_python_words(kNames, [&] {
    const PermuteWithEp plan =
        PermuteWithEp::plan({.tokens = tokens.desc(),
                             .indices = indices.desc(),
                             .probs = probs.given(),
                             .ep_range = ep_range,
                             .num_experts = to_optional_int(num_experts, "num_experts"),
                             .permuted_tokens = *permuted_tokens.desc(),
                             .sorted_indices = *sorted_indices.desc(),
                             .permuted_probs = permuted_probs.desc(),
                             .check_indices = check_indices});
    for (Output* output : {&permuted_tokens, &sorted_indices, &permuted_probs}) {
      output->allocate(tokens.family());
    }
    run_released(plan.bind({.tokens = tokens.data(),
                            .indices = indices.data(),
                            .probs = probs.data(),
                            .permuted_tokens = permuted_tokens.data(),
                            .sorted_indices = sorted_indices.data(),
                            .permuted_probs = permuted_probs.data()}));
    return nb::make_tuple(permuted_tokens.take(), sorted_indices.take(), permuted_probs.take());
  });
}

}  // namespace moe::python
