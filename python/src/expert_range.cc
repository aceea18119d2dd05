#include "moe/expert_range.h"

#include <cstring>
#include <vector>

#include "arguments.h"
#include "array.h"
#include "ops.h"
#include "run.h"

namespace moe::python {
namespace {

template <class Int>
std::vector<int64_t> copied(const Array& counts) {
  const auto* first = static_cast<const Int*>(counts.data()) + counts.desc().offset;
  std::vector<int64_t> values(static_cast<size_t>(counts.size(0)));
  for (size_t i = 0; i < values.size(); ++i) {
    Int value;
    std::memcpy(&value, first + static_cast<int64_t>(i) * counts.desc().strides[0], sizeof(value));
    values[i] = value;
  }
  return values;
}

std::vector<int64_t> counts_of_array(nb::handle object) {
  const Array counts =
      required(object, {.name = "tokens_per_expert", .elements = Elements::kIndices});
  if (counts.desc().num_dims != 1) {
    throw_value_error("tokens_per_expert", counts.desc().num_dims,
                      " dimensions, but needs 1: [num_experts]");
  }
  if (!counts.data() && counts.size(0) > 0) {
    throw_value_error("tokens_per_expert", "without memory, but needs some");
  }
  return counts.desc().dtype == DType::kI32 ? copied<int32_t>(counts) : copied<int64_t>(counts);
}

std::vector<int64_t> counts_of(nb::handle object) {
  if (!nb::isinstance<nb::list>(object) && !nb::isinstance<nb::tuple>(object)) {
    return counts_of_array(object);
  }
  std::vector<int64_t> counts;
  for (nb::handle item : nb::tuple(object)) counts.push_back(to_int(item, "tokens_per_expert"));
  return counts;
}

nb::object as_tuple(const EpRange& range) { return nb::make_tuple(range.begin, range.end); }

}  // namespace

nb::object expert_range(nb::handle tokens_per_expert, nb::handle expert_begin,
                        nb::handle expert_end) {
  const std::vector<int64_t> counts = counts_of(tokens_per_expert);
  return in_python_words({}, [&] {
    return as_tuple(moe::expert_range(std::span(counts), to_int(expert_begin, "expert_begin"),
                                      to_int(expert_end, "expert_end")));
  });
}

nb::object ep_range_of_rank(nb::handle tokens_per_expert, nb::handle rank, nb::handle num_ranks) {
  const std::vector<int64_t> counts = counts_of(tokens_per_expert);
  return in_python_words({}, [&] {
    return as_tuple(moe::ep_range_of_rank(std::span(counts), to_int(rank, "rank"),
                                          to_int(num_ranks, "num_ranks")));
  });
}

}  // namespace moe::python
