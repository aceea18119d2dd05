#include "ref/permute_with_ep_grad.h"

#include <cstring>

namespace ref {
namespace {

// The permuted row of slot (t, k), or -1 where its index lies outside the window.
int64_t row_of(const PermuteWithEpGrad& p, int64_t t, int64_t k) {
  const View& v = p.sorted_indices;
  const int64_t s = load_int(v.type, v.data, v.at(t * p.top_k + k));
  return p.begin <= s && s < p.end ? s - p.begin : -1;
}

template <class Number, class Load>
Number sum(const PermuteWithEpGrad& p, int64_t t, int64_t h, Load load) {
  Number total = 0;
  for (int64_t k = 0; k < p.top_k; ++k) {
    const int64_t row = row_of(p, t, k);
    const Number term = row < 0 ? Number{0} : load(p.permuted_tokens_grad.at(row, h));
    total = k == 0 ? term : total + term;
  }
  return total;
}

void write_element(const PermuteWithEpGrad& p, int64_t t, int64_t h, void* out) {
  const View& v = p.permuted_tokens_grad;
  const int64_t to = t * p.hidden_size + h;
  if (v.type == Type::kF64) {
    const double total = sum<double>(p, t, h, [&](int64_t i) { return load_f64(v.data, i); });
    std::memcpy(static_cast<char*>(out) + to * int64_t{sizeof total}, &total, sizeof total);
  } else {
    store_f32(v.type, out, to,
              sum<float>(p, t, h, [&](int64_t i) { return load_f32(v.type, v.data, i); }));
  }
}

}  // namespace

std::vector<std::byte> tokens_grad(const PermuteWithEpGrad& p) {
  const int64_t bytes = type_bytes(p.permuted_tokens_grad.type);
  std::vector<std::byte> out(static_cast<size_t>(p.num_tokens * p.hidden_size * bytes));
  for (int64_t t = 0; t < p.num_tokens; ++t) {
    for (int64_t h = 0; h < p.hidden_size; ++h) write_element(p, t, h, out.data());
  }
  return out;
}

std::vector<std::byte> probs_grad(const PermuteWithEpGrad& p) {
  const View& v = p.permuted_probs_grad;
  const int64_t bytes = type_bytes(v.type);
  std::vector<std::byte> out(static_cast<size_t>(p.num_tokens * p.top_k * bytes), std::byte{0});
  for (int64_t i = 0; i < p.num_tokens * p.top_k; ++i) {
    const int64_t row = row_of(p, i / p.top_k, i % p.top_k);
    if (row < 0) continue;
    const char* from = static_cast<const char*>(v.data) + v.at(row) * bytes;
    std::memcpy(out.data() + i * bytes, from, static_cast<size_t>(bytes));
  }
  return out;
}

}  // namespace ref
