#include "verify/suspect.h"

#include <algorithm>

namespace moe::tools {
namespace {

// Of those in the window.
int64_t most_slots_of_token(const Suspect& s) {
  const auto [begin, end] = s.sizes.window;
  int64_t most = 0, slots = 0;
  for (int64_t slot = 0; slot < s.num_slots(); ++slot) {
    const int64_t row = s.rows[static_cast<size_t>(slot)];
    if (slot % s.sizes.top_k == 0) slots = 0;
    slots += row >= begin && row < end;
    most = std::max(most, slots);
  }
  return most;
}

}  // namespace

const StoredTensor* Suspect::our(const std::string& name) const {
  for (const StoredTensor& tensor : ours) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

int64_t Suspect::num_terms(const std::string& output) const {
  if (output == "tokens_grad" || output == "out") return most_slots_of_token(*this);
  if (is("unpermute-grad")) return output == "probs_grad" ? sizes.hidden_size : 1;
  return 0;
}

std::vector<int64_t> inverse(const std::vector<int64_t>& permutation) {
  const auto n = static_cast<int64_t>(permutation.size());
  std::vector<int64_t> result(permutation.size(), -1);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t to = permutation[static_cast<size_t>(i)];
    if (to < 0 || to >= n || result[static_cast<size_t>(to)] >= 0) return {};
    result[static_cast<size_t>(to)] = i;
  }
  return result;
}

}  // namespace moe::tools
