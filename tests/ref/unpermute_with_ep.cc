#include "ref/unpermute_with_ep.h"

#include <array>
#include <cstring>

namespace ref {
namespace {

// Elements as the numbers that sums are taken in.
template <class Number>
Number read(const View& view, int64_t i, int64_t j) {
  if constexpr (sizeof(Number) == 8) {
    return load_f64(view.data, view.at(i, j));
  } else {
    return load_f32(view.type, view.data, view.at(i, j));
  }
}

template <class Number>
void write(Type type, std::vector<std::byte>& out, int64_t index, Number value) {
  if constexpr (sizeof(Number) == 8) {
    std::memcpy(out.data() + index * 8, &value, 8);
  } else {
    store_f32(type, out.data(), index, value);
  }
}

std::vector<std::byte> zeros(Type type, int64_t count) {
  return std::vector<std::byte>(static_cast<size_t>(count * type_bytes(type)), std::byte{0});
}

// The row of the window that slot (t, k) names, or -1.
int64_t row_of(const Unpermute& p, int64_t t, int64_t k) {
  const View& v = p.sorted_indices;
  const int64_t s = load_int(v.type, v.data, v.at(t * p.top_k + k));
  return s < p.begin || s >= p.end ? -1 : s - p.begin;
}

template <class Number>
Number weight(const Unpermute& p, int64_t t, int64_t k) {
  return p.probs.data ? read<Number>(p.probs, t, k) : Number{1};
}

template <class Number>
Number term(const Unpermute& p, int64_t t, int64_t k, int64_t h) {
  const int64_t row = row_of(p, t, k);
  const Number w = weight<Number>(p, t, k);
  if (row < 0 || w == 0) return 0;
  return read<Number>(p.permuted_tokens, row, h) * w;
}

template <class Number>
std::vector<std::byte> sums(const Unpermute& p) {
  const Type type = p.permuted_tokens.type;
  std::vector<std::byte> out = zeros(type, p.num_tokens * p.hidden_size);
  for (int64_t t = 0; t < p.num_tokens; ++t) {
    for (int64_t h = 0; h < p.hidden_size; ++h) {
      Number total = term<Number>(p, t, 0, h);
      for (int64_t k = 1; k < p.top_k; ++k) total = total + term<Number>(p, t, k, h);
      write(type, out, t * p.hidden_size + h, total);
    }
  }
  return out;
}

template <class Number>
std::vector<std::byte> rows(const Unpermute& p, int64_t num_rows) {
  const Type type = p.unpermuted_tokens_grad.type;
  std::vector<std::byte> out = zeros(type, num_rows * p.hidden_size);
  for (int64_t slot = 0; slot < p.num_tokens * p.top_k; ++slot) {
    const int64_t t = slot / p.top_k, k = slot % p.top_k, row = row_of(p, t, k);
    const Number w = weight<Number>(p, t, k);
    if (row < 0 || w == 0) continue;
    for (int64_t h = 0; h < p.hidden_size; ++h) {
      write(type, out, row * p.hidden_size + h, read<Number>(p.unpermuted_tokens_grad, t, h) * w);
    }
  }
  return out;
}

template <class Number>
Number dot(const Unpermute& p, int64_t t, int64_t row) {
  std::array<Number, 64> partial{};
  for (int64_t h = 0; h < p.hidden_size; ++h) {
    const Number product =
        read<Number>(p.permuted_tokens, row, h) * read<Number>(p.unpermuted_tokens_grad, t, h);
    Number& sum = partial[static_cast<size_t>(h % 64)];
    sum = sum + product;
  }
  for (const size_t distance : {32, 16, 8, 4, 2, 1}) {
    for (size_t i = 0; i < distance; ++i) partial[i] = partial[i] + partial[i + distance];
  }
  return partial[0];
}

template <class Number>
std::vector<std::byte> dots(const Unpermute& p) {
  std::vector<std::byte> out = zeros(p.probs.type, p.num_tokens * p.top_k);
  for (int64_t slot = 0; slot < p.num_tokens * p.top_k; ++slot) {
    const int64_t t = slot / p.top_k, row = row_of(p, t, slot % p.top_k);
    if (row >= 0) write(p.probs.type, out, slot, dot<Number>(p, t, row));
  }
  return out;
}

}  // namespace

std::vector<std::byte> unpermuted(const Unpermute& p) {
  return p.permuted_tokens.type == Type::kF64 ? sums<double>(p) : sums<float>(p);
}

std::vector<std::byte> permuted_tokens_grad(const Unpermute& p, int64_t num_rows) {
  return p.unpermuted_tokens_grad.type == Type::kF64 ? rows<double>(p, num_rows)
                                                     : rows<float>(p, num_rows);
}

std::vector<std::byte> unpermute_probs_grad(const Unpermute& p) {
  return p.unpermuted_tokens_grad.type == Type::kF64 ? dots<double>(p) : dots<float>(p);
}

}  // namespace ref
