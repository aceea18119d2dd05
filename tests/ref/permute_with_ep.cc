#include "ref/permute_with_ep.h"

#include <cstring>

#include "ref/routing.h"

namespace ref {
namespace {

// The expert of a slot, or -1 where it is not routed.
int64_t expert_of(const PermuteWithEp& p, int64_t slot) {
  const View& v = p.indices;
  const int64_t id = load_int(v.type, v.data, v.at(slot / p.top_k, slot % p.top_k));
  const bool routed = id >= 0 && id <= 0x7fffffff && (p.num_experts < 0 || id < p.num_experts);
  return routed ? id : -1;
}

std::vector<int64_t> order(const PermuteWithEp& p) {
  std::vector<int64_t> experts;
  for (int64_t i = 0; i < p.num_tokens * p.top_k; ++i) experts.push_back(expert_of(p, i));
  return stable_argsort(experts);
}

// Copies element (i, j) of a view to the place `to` of contiguous elements.
void copy(const View& v, int64_t i, int64_t j, std::vector<std::byte>& out, int64_t to) {
  const int64_t bytes = type_bytes(v.type);
  std::memcpy(out.data() + to * bytes, static_cast<const char*>(v.data) + v.at(i, j) * bytes,
              static_cast<size_t>(bytes));
}

}  // namespace

std::vector<int64_t> sorted_indices(const PermuteWithEp& p) { return inverse(order(p)); }

std::vector<int64_t> tokens_per_expert(const PermuteWithEp& p) {
  std::vector<int64_t> counts(static_cast<size_t>(p.num_experts));
  for (int64_t i = 0; i < p.num_tokens * p.top_k; ++i) {
    if (const int64_t e = expert_of(p, i); e >= 0) ++counts[static_cast<size_t>(e)];
  }
  return counts;
}

std::vector<std::byte> permuted_tokens(const PermuteWithEp& p, int64_t rows) {
  std::vector<std::byte> out(static_cast<size_t>(rows * p.hidden_size * type_bytes(p.tokens.type)));
  const std::vector<int64_t> slots = order(p);
  for (int64_t row = p.begin; row < p.end; ++row) {
    const int64_t token = slots[static_cast<size_t>(row)] / p.top_k;
    for (int64_t h = 0; h < p.hidden_size; ++h) {
      copy(p.tokens, token, h, out, (row - p.begin) * p.hidden_size + h);
    }
  }
  return out;
}

std::vector<std::byte> permuted_probs(const PermuteWithEp& p, int64_t rows) {
  std::vector<std::byte> out(static_cast<size_t>(rows * type_bytes(p.probs.type)));
  const std::vector<int64_t> slots = order(p);
  for (int64_t row = p.begin; row < p.end; ++row) {
    const int64_t slot = slots[static_cast<size_t>(row)];
    copy(p.probs, slot / p.top_k, slot % p.top_k, out, row - p.begin);
  }
  return out;
}

}  // namespace ref
