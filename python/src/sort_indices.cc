#include <algorithm>

#include "arguments.h"
#include "array.h"
#include "moe/sort_by_expert.h"
#include "ops.h"
#include "outputs.h"
#include "run.h"

namespace moe::python {
namespace {

constexpr Name kNames[] = {{"sorted_indices", "out[0] (sorted_indices)"},
                           {"tokens_per_expert", "out[1] (tokens_per_expert)"}};

}  // namespace

nb::object sort_indices(nb::handle indices_object, nb::handle num_experts_object, nb::handle out,
                        bool check_indices) {
  const Array indices =
      required(indices_object, {.name = "indices", .elements = Elements::kIndices});
  const std::optional<int64_t> num_experts = to_optional_int(num_experts_object, "num_experts");
  const auto given = split_outputs(out, 2);
  Output sorted_indices(given[0], kNames[0].python);
  Output tokens_per_expert(given[1], kNames[1].python);

  const int64_t num_slots = slots_of(indices);
  sorted_indices.expect(index_dtype(num_slots), {num_slots});
  if (num_experts) {
    tokens_per_expert.expect(sorted_indices.desc()->dtype, {std::max<int64_t>(*num_experts, 0)});
  }

  return in_python_words(kNames, [&] {
    const SortByExpert plan = SortByExpert::plan({.indices = indices.desc(),
                                                  .num_experts = num_experts,
                                                  .sorted_indices = *sorted_indices.desc(),
                                                  .tokens_per_expert = tokens_per_expert.desc(),
                                                  .check_indices = check_indices});
    sorted_indices.allocate(indices.family());
    tokens_per_expert.allocate(indices.family());
    run_released(plan.bind({.indices = indices.data(),
                            .sorted_indices = sorted_indices.data(),
                            .tokens_per_expert = tokens_per_expert.data()}));
    return nb::make_tuple(sorted_indices.take(), tokens_per_expert.take());
  });
}

}  // namespace moe::python
