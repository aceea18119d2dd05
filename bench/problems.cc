#include "problems.h"

#include <stdexcept>

namespace moe::bench {

const std::vector<Op>& all_ops() {
  static const std::vector<Op> ops = {
      {"permute_with_ep", permute_with_ep_problem},
      {"permute_with_ep_grad", permute_with_ep_grad_problem},
      {"unpermute_with_ep", unpermute_with_ep_problem},
      {"unpermute_with_ep_grad", unpermute_with_ep_grad_problem},
  };
  return ops;
}

const Op& find_op(const std::string& name) {
  for (const Op& op : all_ops()) {
    if (op.name == name) return op;
  }
  throw std::invalid_argument("operator: \"" + name + "\", but there is none of that name");
}

}  // namespace moe::bench
