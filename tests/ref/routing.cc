#include "ref/routing.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace ref {
namespace {

int64_t draw(const std::vector<double>& weights, double total, Random& random) {
  double left = random.unit() * total;
  for (size_t e = 0; e + 1 < weights.size(); ++e) {
    left -= weights[e];
    if (left < 0) return static_cast<int64_t>(e);
  }
  return static_cast<int64_t>(weights.size()) - 1;
}

std::vector<int64_t> weighted_routing(int64_t num_tokens, int64_t top_k,
                                      const std::vector<double>& weights, uint64_t seed) {
  Random random(seed);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const bool distinct = top_k <= static_cast<int64_t>(weights.size());
  std::vector<int64_t> experts;
  for (int64_t t = 0; t < num_tokens; ++t) {
    const auto token = static_cast<int64_t>(experts.size());
    while (static_cast<int64_t>(experts.size()) < token + top_k) {
      const int64_t expert = draw(weights, total, random);
      const bool taken = std::find(experts.begin() + token, experts.end(), expert) != experts.end();
      if (!distinct || !taken) experts.push_back(expert);
    }
  }
  return experts;
}

}  // namespace

uint64_t Random::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::vector<int64_t> uniform_routing(int64_t num_tokens, int64_t top_k, int64_t num_experts,
                                     uint64_t seed) {
  return weighted_routing(num_tokens, top_k,
                          std::vector<double>(static_cast<size_t>(num_experts), 1.0), seed);
}

std::vector<int64_t> zipf_routing(int64_t num_tokens, int64_t top_k, int64_t num_experts,
                                  uint64_t seed) {
  std::vector<double> weights;
  for (int64_t e = 0; e < num_experts; ++e) weights.push_back(1.0 / static_cast<double>(e + 1));
  return weighted_routing(num_tokens, top_k, weights, seed);
}

std::vector<int64_t> all_to_one_routing(int64_t num_tokens, int64_t top_k, int64_t expert) {
  return std::vector<int64_t>(static_cast<size_t>(num_tokens * top_k), expert);
}

std::vector<int64_t> stable_argsort(const std::vector<int64_t>& experts) {
  std::vector<int64_t> order(experts.size());
  std::iota(order.begin(), order.end(), 0);
  const auto group = [&](int64_t slot) {
    const int64_t expert = experts[static_cast<size_t>(slot)];
    return expert < 0 ? std::numeric_limits<int64_t>::max() : expert;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return group(a) < group(b); });
  return order;
}

std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> result(order.size());
  for (size_t g = 0; g < order.size(); ++g) {
    result[static_cast<size_t>(order[g])] = static_cast<int64_t>(g);
  }
  return result;
}

std::vector<int64_t> permutation(int64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  for (int64_t i = n; i > 1; --i) {
    std::swap(values[static_cast<size_t>(i - 1)], values[static_cast<size_t>(random.below(i))]);
  }
  return values;
}

}  // namespace ref
