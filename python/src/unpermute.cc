#include "arguments.h"
#include "array.h"
#include "moe/unpermute_with_ep.h"
#include "ops.h"
#include "outputs.h"
#include "run.h"

namespace moe::python {

nb::object unpermute(nb::handle tokens_object, nb::handle indices_object, nb::handle probs_object,
                     nb::handle top_k, nb::handle ep_range, nb::handle out_object,
                     bool check_indices, bool allow_grad) {
  const Array rows = required(tokens_object, {.name = "permuted_tokens", .allow_grad = allow_grad});
  const Array sorted_indices =
      required(indices_object, {.name = "sorted_indices", .elements = Elements::kIndices});
  const Array probs(probs_object, {.name = "probs", .allow_grad = allow_grad});
  const int64_t k = top_k_of(top_k, probs);
  // There is one result only, so `out` may do without the tuple.
  const bool is_tuple = PyTuple_Check(out_object.ptr());
  Output out(is_tuple ? split_outputs(out_object, 1)[0] : out_object, "out");
  out.expect(rows.desc().dtype, {tokens_of_slots(sorted_indices, k), rows.size(1)});

  return in_python_words({}, [&] {
    const UnpermuteWithEp plan = UnpermuteWithEp::plan({.permuted_tokens = rows.desc(),
                                                        .sorted_indices = sorted_indices.desc(),
                                                        .probs = probs.given(),
                                                        .top_k = k,
                                                        .ep_range = to_ep_range(ep_range),
                                                        .out = *out.desc(),
                                                        .check_indices = check_indices});
    out.allocate(rows.family());
    run_released(plan.bind({.permuted_tokens = rows.data(),
                            .sorted_indices = sorted_indices.data(),
                            .probs = probs.data(),
                            .out = out.data()}));
    return out.take();
  });
}

}  // namespace moe::python
