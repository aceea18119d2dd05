// The operators as _native has them: all arguments by position, checked, run, and given back.
#pragma once

#include <nanobind/nanobind.h>

namespace moe::python {

namespace nb = nanobind;

nb::object permute(nb::handle tokens, nb::handle indices, nb::handle probs, nb::handle ep_range,
                   nb::handle num_experts, nb::handle out, bool check_indices, bool allow_grad);

nb::object permute_grad(nb::handle permuted_tokens_grad, nb::handle sorted_indices,
                        nb::handle top_k, nb::handle permuted_probs_grad, nb::handle ep_range,
                        nb::handle out, bool check_indices, bool allow_grad);

nb::object unpermute(nb::handle permuted_tokens, nb::handle sorted_indices, nb::handle probs,
                     nb::handle top_k, nb::handle ep_range, nb::handle out, bool check_indices,
                     bool allow_grad);

nb::object unpermute_grad(nb::handle tokens_grad, nb::handle sorted_indices,
                          nb::handle permuted_tokens, nb::handle probs, nb::handle top_k,
                          nb::handle ep_range, nb::handle out, bool check_indices, bool allow_grad);

nb::object sort_indices(nb::handle indices, nb::handle num_experts, nb::handle out,
                        bool check_indices);

// (begin, end), from counts in an array or in a list or tuple of ints.
nb::object expert_range(nb::handle tokens_per_expert, nb::handle expert_begin,
                        nb::handle expert_end);
nb::object ep_range_of_rank(nb::handle tokens_per_expert, nb::handle rank, nb::handle num_ranks);

}  // namespace moe::python
