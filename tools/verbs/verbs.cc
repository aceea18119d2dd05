#include "verbs/verbs.h"

namespace moe::tools {

std::vector<std::unique_ptr<Verb>> all_verbs() {
  std::vector<std::unique_ptr<Verb>> verbs;
  for (const Operator& op : all_operators()) verbs.push_back(operator_verb(op));
  for (auto make :
       {verify_verb, explain_verb, tensors_verb, gen_verb, bench_verb, plot_verb, doctor_verb}) {
    verbs.push_back(make());
  }
  return verbs;
}

}  // namespace moe::tools
