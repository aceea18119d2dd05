#include "verbs/verbs.h"

namespace moe::tools {

std::vector<std::unique_ptr<Verb>> all_verbs() {
  std::vector<std::unique_ptr<Verb>> verbs;
  for (const Operator& op : all_operators()) verbs.push_back(operator_verb(op));
  return verbs;
}

}  // namespace moe::tools
