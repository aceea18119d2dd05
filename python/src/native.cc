// The extension module moe_permute._native. The public functions, with their documentation, are
// thin ones in Python.
#include <nanobind/nanobind.h>

#include "config.h"
#include "numpy.h"
#include "ops.h"
#include "torch_road.h"
#include "xla.h"

namespace nb = nanobind;
using namespace moe::python;

namespace {

// A function that sees every argument as it is, None too.
template <class... Args>
void def(nb::module_& module, const char* name, nb::object (*function)(Args...), const char* doc) {
  module.def(name, function, doc, (static_cast<void>(sizeof(Args)), nb::arg().none())...);
}

}  // namespace

NB_MODULE(_native, module) {
  import_numpy();
  module.doc() =
      "The compiled half of moe_permute. Private; arguments go by position, without defaults.\n\n"
      "Each operator takes what the public function of its name takes, in that order, and then two "
      "bools: check_indices (verify the indices before anything is written) and allow_grad (take "
      "torch tensors that require a gradient, for callers that record it themselves).";
  def(module, "permute", &permute,
      "(tokens, indices, probs, ep_range, num_experts, out, check_indices, allow_grad)");
  def(module, "permute_grad", &permute_grad,
      "(permuted_tokens_grad, sorted_indices, top_k, permuted_probs_grad, ep_range, out, "
      "check_indices, allow_grad)");
  def(module, "unpermute", &unpermute,
      "(permuted_tokens, sorted_indices, probs, top_k, ep_range, out, check_indices, allow_grad)");
  def(module, "unpermute_grad", &unpermute_grad,
      "(tokens_grad, sorted_indices, permuted_tokens, probs, top_k, ep_range, out, check_indices, "
      "allow_grad)");
  def(module, "sort_indices", &sort_indices, "(indices, num_experts, out, check_indices)");
  def(module, "expert_range", &expert_range, "(tokens_per_expert, expert_begin, expert_end)");
  def(module, "ep_range_of_rank", &ep_range_of_rank, "(tokens_per_expert, rank, num_ranks)");
  def(module, "set_num_threads", &set_num_threads, "(num_threads)");
  module.def("num_threads", &num_threads);
  module.def("torch_road", &torch_road,
             "How an eager call with these arguments gets to its operator: 0 by PyTorch's "
             "dispatcher, 1 by torch.func, 2 through autograd, 3 directly.");
  module.def("xla_handlers", &xla_handlers, "Capsules for jax.ffi, by name; empty without jaxlib.");
  module.def("config", &config, "What this build is and what it found, as a dict.");
}
