// Routing for tests: which experts tokens choose, and the row orders that follow from it. The same
// everywhere for the same seed: nothing here depends on a standard library's distributions.
#pragma once

#include <cstdint>
#include <vector>

namespace ref {

// SplitMix64: small, and good enough for test data.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  // Uniform in [0, n), but for a bias far below what a test could see.
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  // Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

// Expert ids [num_tokens * top_k]. A token's experts are distinct where there are enough of them.
std::vector<int64_t> uniform_routing(int64_t num_tokens, int64_t top_k, int64_t num_experts,
                                     uint64_t seed);
// Expert e is chosen with a weight of 1 / (e + 1).
std::vector<int64_t> zipf_routing(int64_t num_tokens, int64_t top_k, int64_t num_experts,
                                  uint64_t seed);
// Every slot goes to `expert`.
std::vector<int64_t> all_to_one_routing(int64_t num_tokens, int64_t top_k, int64_t expert);

// order[g] = the slot that lands at global row g: by expert, equal ones in slot order; slots that
// are not routed (a negative expert) last.
std::vector<int64_t> stable_argsort(const std::vector<int64_t>& experts);
// inverse(order)[order[g]] = g.
std::vector<int64_t> inverse(const std::vector<int64_t>& order);
// A random permutation of [0, n).
std::vector<int64_t> permutation(int64_t n, uint64_t seed);

}  // namespace ref
