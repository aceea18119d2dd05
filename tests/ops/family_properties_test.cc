// What holds between the four operators, over thousands of random cases: ranks add up to the whole,
// gradients are transposes and agree with finite differences, and there and back is the identity.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "moe/moe.h"
#include "ref/routing.h"
#include "support/effort.h"

namespace test {
namespace {

using moe::DType;
using moe::EpRange;
using moe::TensorDesc;
using Numbers = std::vector<double>;

TensorDesc f64(std::initializer_list<int64_t> shape) {
  return TensorDesc::contiguous(DType::kF64, shape);
}

template <class Plan, class Pointers>
void run(const Plan& plan, const Pointers& pointers) {
  std::vector<char> workspace(plan.workspace_bytes());
  plan.bind(pointers).run(workspace.data());
}

// A layer's sizes, its routing, and the four operators over a window of it.
struct Layer {
  int64_t num_tokens, top_k, hidden_size;
  std::vector<int32_t> experts;         // [T, K]; some negative: not routed
  std::vector<int32_t> sorted_indices;  // [L], by the forward

  int64_t num_slots() const { return num_tokens * top_k; }
  size_t tokens_size() const { return static_cast<size_t>(num_tokens * hidden_size); }
  size_t slots_size() const { return static_cast<size_t>(num_slots()); }
  size_t rows_size(EpRange w) const { return static_cast<size_t>((w.end - w.begin) * hidden_size); }

  Numbers permute(const Numbers& tokens, EpRange window) {
    Numbers rows(rows_size(window), NAN);
    sorted_indices.resize(slots_size());
    run(moe::PermuteWithEp::plan(
            {.tokens = f64({num_tokens, hidden_size}),
             .indices = TensorDesc::contiguous(DType::kI32, {num_tokens, top_k}),
             .ep_range = window,
             .permuted_tokens = f64({window.end - window.begin, hidden_size}),
             .sorted_indices = TensorDesc::contiguous(DType::kI32, {num_slots()})}),
        moe::PermuteWithEp::Pointers{.tokens = tokens.data(),
                                     .indices = experts.data(),
                                     .permuted_tokens = rows.data(),
                                     .sorted_indices = sorted_indices.data()});
    return rows;
  }

  Numbers permute_grad(const Numbers& rows_grad, EpRange window) const {
    Numbers tokens_grad(tokens_size(), NAN);
    run(moe::PermuteWithEpGrad::plan(
            {.permuted_tokens_grad = f64({window.end - window.begin, hidden_size}),
             .sorted_indices = TensorDesc::contiguous(DType::kI32, {num_slots()}),
             .top_k = top_k,
             .ep_range = window,
             .tokens_grad = f64({num_tokens, hidden_size})}),
        moe::PermuteWithEpGrad::Pointers{.permuted_tokens_grad = rows_grad.data(),
                                         .sorted_indices = sorted_indices.data(),
                                         .tokens_grad = tokens_grad.data()});
    return tokens_grad;
  }

  // The probs alone, beside tokens of no numbers.
  Numbers permute_probs(const Numbers& probs, EpRange window) {
    const int64_t num_rows = window.end - window.begin;
    Numbers row_probs(static_cast<size_t>(num_rows), NAN);
    sorted_indices.resize(slots_size());
    run(moe::PermuteWithEp::plan(
            {.tokens = f64({num_tokens, 0}),
             .indices = TensorDesc::contiguous(DType::kI32, {num_tokens, top_k}),
             .probs = f64({num_tokens, top_k}),
             .ep_range = window,
             .permuted_tokens = f64({num_rows, 0}),
             .sorted_indices = TensorDesc::contiguous(DType::kI32, {num_slots()}),
             .permuted_probs = f64({num_rows})}),
        moe::PermuteWithEp::Pointers{.indices = experts.data(),
                                     .probs = probs.data(),
                                     .sorted_indices = sorted_indices.data(),
                                     .permuted_probs = row_probs.data()});
    return row_probs;
  }

  Numbers permute_probs_grad(const Numbers& row_probs_grad, EpRange window) const {
    const int64_t num_rows = window.end - window.begin;
    Numbers probs_grad(slots_size(), NAN);
    run(moe::PermuteWithEpGrad::plan(
            {.permuted_tokens_grad = f64({num_rows, 0}),
             .sorted_indices = TensorDesc::contiguous(DType::kI32, {num_slots()}),
             .permuted_probs_grad = f64({num_rows}),
             .top_k = top_k,
             .ep_range = window,
             .tokens_grad = f64({num_tokens, 0}),
             .probs_grad = f64({num_tokens, top_k})}),
        moe::PermuteWithEpGrad::Pointers{.sorted_indices = sorted_indices.data(),
                                         .permuted_probs_grad = row_probs_grad.data(),
                                         .probs_grad = probs_grad.data()});
    return probs_grad;
  }

  // The windows of the ranks, which hold the routed slots.
  std::vector<EpRange> rank_windows(int64_t num_ranks) {
    std::vector<int64_t> counts(16);
    sorted_indices.resize(slots_size());
    run(moe::SortByExpert::plan(
            {.indices = TensorDesc::contiguous(DType::kI32, {num_tokens, top_k}),
             .num_experts = std::ssize(counts),
             .sorted_indices = TensorDesc::contiguous(DType::kI32, {num_slots()}),
             .tokens_per_expert = TensorDesc::contiguous(DType::kI64, {std::ssize(counts)})}),
        moe::SortByExpert::Pointers{experts.data(), sorted_indices.data(), counts.data()});
    std::vector<EpRange> windows;
    for (int64_t r = 0; r < num_ranks; ++r) {
      windows.push_back(moe::ep_range_of_rank(counts, r, num_ranks));
    }
    return windows;
  }

  Numbers unpermute(const Numbers& rows, const Numbers& probs, EpRange window) const {
    Numbers tokens(tokens_size(), NAN);
    run(moe::UnpermuteWithEp::plan(
            {.permuted_tokens = f64({window.end - window.begin, hidden_size}),
             .sorted_indices = TensorDesc::contiguous(DType::kI32, {num_slots()}),
             .probs = f64({num_tokens, top_k}),
             .top_k = top_k,
             .ep_range = window,
             .out = f64({num_tokens, hidden_size})}),
        moe::UnpermuteWithEp::Pointers{rows.data(), sorted_indices.data(), probs.data(),
                                       tokens.data()});
    return tokens;
  }

  struct Gradients {
    Numbers rows, probs;
  };
  Gradients unpermute_grad(const Numbers& tokens_grad, const Numbers& rows, const Numbers& probs,
                           EpRange window) const {
    Gradients grad{Numbers(rows_size(window), NAN), Numbers(slots_size(), NAN)};
    const TensorDesc rows_desc = f64({window.end - window.begin, hidden_size});
    run(moe::UnpermuteWithEpGrad::plan(
            {.unpermuted_tokens_grad = f64({num_tokens, hidden_size}),
             .sorted_indices = TensorDesc::contiguous(DType::kI32, {num_slots()}),
             .permuted_tokens = rows_desc,
             .probs = f64({num_tokens, top_k}),
             .top_k = top_k,
             .ep_range = window,
             .permuted_tokens_grad = rows_desc,
             .probs_grad = f64({num_tokens, top_k})}),
        moe::UnpermuteWithEpGrad::Pointers{tokens_grad.data(), sorted_indices.data(), rows.data(),
                                           probs.data(), grad.rows.data(), grad.probs.data()});
    return grad;
  }
};

// A random layer; a token may name an expert twice, and some slots are not routed.
Layer random_layer(ref::Random& random) {
  Layer layer{1 + random.below(12), 1 + random.below(5), 1 + random.below(90), {}, {}};
  const int64_t num_experts = 1 + random.below(9);
  for (int64_t slot = 0; slot < layer.num_slots(); ++slot) {
    const bool routed = random.below(16) > 0;
    layer.experts.push_back(static_cast<int32_t>(routed ? random.below(num_experts) : -1));
  }
  return layer;
}

Numbers random_numbers(size_t count, ref::Random& random) {
  Numbers numbers(count);
  for (double& x : numbers) x = 2 * random.unit() - 1;
  return numbers;
}

// Integers, some of them 0: sums and products are exact.
Numbers random_integers(size_t count, ref::Random& random) {
  Numbers numbers(count);
  for (double& x : numbers) x = static_cast<double>(random.below(9) - 4);
  return numbers;
}

EpRange random_window(int64_t num_slots, ref::Random& random) {
  const int64_t begin = random.below(num_slots + 1);
  return {begin, begin + random.below(num_slots - begin + 1)};
}

// Windows that tile all rows.
std::vector<EpRange> random_tiles(int64_t num_slots, ref::Random& random) {
  std::vector<EpRange> tiles;
  for (int64_t begin = 0; begin < num_slots; begin = tiles.back().end) {
    tiles.push_back({begin, begin + random.below(num_slots - begin + 1)});
  }
  return tiles;
}

struct Product {
  double sum = 0, magnitude = 0;
};
Product inner(const Numbers& a, const Numbers& b) {
  Product p;
  for (size_t i = 0; i < a.size(); ++i) {
    p.sum += a[i] * b[i];
    p.magnitude += std::abs(a[i] * b[i]);
  }
  return p;
}

void expect_near(const Product& a, const Product& b, const char* what) {
  EXPECT_LE(std::abs(a.sum - b.sum), 1e-12 * (a.magnitude + b.magnitude)) << what;
}

void add(Numbers& sum, const Numbers& part) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
}

// Calls body(layer, random) for seeds in turn, and stops at the first that fails.
template <class Body>
void for_random_layers(int64_t count, Body&& body) {
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(effort(count)); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ref::Random random(seed);
    Layer layer = random_layer(random);
    body(layer, random);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(FamilyProperties, WindowsThatTileAddUpToTheWhole) {
  for_random_layers(1500, [](Layer& layer, ref::Random& random) {
    const EpRange all{0, layer.num_slots()};
    const Numbers tokens = random_integers(layer.tokens_size(), random);
    const Numbers rows = layer.permute(tokens, all);
    const Numbers probs = random_integers(layer.slots_size(), random);
    const Numbers grad = random_integers(layer.tokens_size(), random);
    Numbers out(layer.tokens_size()), tokens_grad(layer.tokens_size());
    Numbers probs_grad(layer.slots_size()), tiled_rows, rows_grad;
    for (const EpRange& tile : random_tiles(layer.num_slots(), random)) {
      const Numbers own = layer.permute(tokens, tile);
      tiled_rows.insert(tiled_rows.end(), own.begin(), own.end());
      add(out, layer.unpermute(own, probs, tile));
      add(tokens_grad, layer.permute_grad(own, tile));
      const Layer::Gradients part = layer.unpermute_grad(grad, own, probs, tile);
      rows_grad.insert(rows_grad.end(), part.rows.begin(), part.rows.end());
      add(probs_grad, part.probs);
    }
    EXPECT_EQ(tiled_rows, rows);
    EXPECT_EQ(out, layer.unpermute(rows, probs, all));
    EXPECT_EQ(tokens_grad, layer.permute_grad(rows, all));
    const Layer::Gradients whole = layer.unpermute_grad(grad, rows, probs, all);
    EXPECT_EQ(rows_grad, whole.rows);
    EXPECT_EQ(probs_grad, whole.probs);
  });
}

TEST(FamilyProperties, GradientsAreTransposes) {
  for_random_layers(2000, [](Layer& layer, ref::Random& random) {
    const EpRange window = random_window(layer.num_slots(), random);
    const Numbers tokens = random_numbers(layer.tokens_size(), random);
    const Numbers permuted = layer.permute(tokens, window);
    const Numbers rows = random_numbers(layer.rows_size(window), random);
    expect_near(inner(permuted, rows), inner(tokens, layer.permute_grad(rows, window)), "permute");

    Numbers probs = random_numbers(layer.slots_size(), random);
    if (random.below(2)) probs[static_cast<size_t>(random.below(layer.num_slots()))] = 0;
    const Numbers grad = random_numbers(layer.tokens_size(), random);
    const Product forward = inner(layer.unpermute(rows, probs, window), grad);
    const Layer::Gradients back = layer.unpermute_grad(grad, rows, probs, window);
    expect_near(forward, inner(rows, back.rows), "unpermute, rows");
    expect_near(forward, inner(probs, back.probs), "unpermute, probs");
  });
}

TEST(FamilyProperties, ProbsOfRows) {
  for_random_layers(1500, [](Layer& layer, ref::Random& random) {
    const Numbers probs = random_numbers(layer.slots_size(), random);
    const EpRange all{0, layer.num_slots()}, window = random_window(layer.num_slots(), random);
    const Numbers row_probs = layer.permute_probs(probs, all);
    EXPECT_EQ(layer.permute_probs_grad(row_probs, all), probs) << "there and back";
    Numbers tiled, back(probs.size());
    for (const EpRange& tile : random_tiles(layer.num_slots(), random)) {
      const Numbers own = layer.permute_probs(probs, tile);
      tiled.insert(tiled.end(), own.begin(), own.end());
      add(back, layer.permute_probs_grad(own, tile));
    }
    EXPECT_EQ(tiled, row_probs);
    EXPECT_EQ(back, probs);
    const Numbers grad = random_numbers(static_cast<size_t>(window.end - window.begin), random);
    expect_near(inner(layer.permute_probs(probs, window), grad),
                inner(probs, layer.permute_probs_grad(grad, window)), "transpose");
  });
}

// What the ranks give together is what the routed slots give: a prob of 0 takes the others out.
TEST(FamilyProperties, RanksAddUpToTheRoutedSlots) {
  for_random_layers(1000, [](Layer& layer, ref::Random& random) {
    const Numbers tokens = random_integers(layer.tokens_size(), random);
    const Numbers probs = random_integers(layer.slots_size(), random);
    Numbers out(layer.tokens_size()), routed_probs = probs;
    for (const EpRange& window : layer.rank_windows(1 + random.below(5))) {
      add(out, layer.unpermute(layer.permute(tokens, window), probs, window));
    }
    for (size_t slot = 0; slot < probs.size(); ++slot) {
      if (layer.experts[slot] < 0) routed_probs[slot] = 0;
    }
    const EpRange all{0, layer.num_slots()};
    EXPECT_EQ(out, layer.unpermute(layer.permute(tokens, all), routed_probs, all));
  });
}

TEST(FamilyProperties, ThereAndBack) {
  for_random_layers(1500, [](Layer& layer, ref::Random& random) {
    int64_t k = 1;
    while (2 * k <= layer.top_k) k *= 2;
    layer.top_k = k;
    layer.experts.resize(layer.slots_size());
    const EpRange all{0, layer.num_slots()};
    const Numbers tokens = random_numbers(layer.tokens_size(), random);
    const Numbers rows = layer.permute(tokens, all);
    const Numbers even(layer.slots_size(), 1 / static_cast<double>(k));
    EXPECT_EQ(layer.unpermute(rows, even, all), tokens);
    // Without weights the sum has every token K times.
    const Numbers times_k = layer.permute_grad(rows, all);
    for (size_t i = 0; i < tokens.size(); ++i) {
      EXPECT_NEAR(times_k[i], static_cast<double>(k) * tokens[i], 1e-14 * static_cast<double>(k));
    }
  });
}

// d loss / d x[i] where the loss is <out, grad>, and out is linear in x.
template <class Loss>
double finite_difference(Numbers x, size_t i, Loss&& loss) {
  constexpr double kStep = 0x1p-6;
  const double middle = x[i];
  x[i] = middle + kStep;
  const double up = loss(x);
  x[i] = middle - kStep;
  return (up - loss(x)) / (2 * kStep);
}

TEST(FamilyProperties, GradientsAgreeWithFiniteDifferences) {
  for_random_layers(600, [](Layer& layer, ref::Random& random) {
    const EpRange window = random_window(layer.num_slots(), random);
    const Numbers tokens = random_numbers(layer.tokens_size(), random);
    const Numbers rows = layer.permute(tokens, window);
    const Numbers probs = random_numbers(layer.slots_size(), random);
    const Numbers grad = random_numbers(layer.tokens_size(), random);
    const Layer::Gradients back = layer.unpermute_grad(grad, rows, probs, window);
    const Numbers back_to_tokens = layer.permute_grad(back.rows, window);
    const auto index = [&](const Numbers& of) {
      return static_cast<size_t>(random.below(static_cast<int64_t>(of.size())));
    };
    const size_t p = index(probs), t = index(tokens);
    EXPECT_NEAR(back.probs[p],
                finite_difference(probs, p,
                                  [&](const Numbers& x) {
                                    return inner(layer.unpermute(rows, x, window), grad).sum;
                                  }),
                1e-9);
    if (!rows.empty()) {
      const size_t r = index(rows);
      EXPECT_NEAR(back.rows[r],
                  finite_difference(rows, r,
                                    [&](const Numbers& x) {
                                      return inner(layer.unpermute(x, probs, window), grad).sum;
                                    }),
                  1e-9);
    }
    // Through both: tokens to rows and back.
    EXPECT_NEAR(
        back_to_tokens[t],
        finite_difference(
            tokens, t,
            [&](const Numbers& x) {
              return inner(layer.unpermute(layer.permute(x, window), probs, window), grad).sum;
            }),
        1e-9);
  });
}

}  // namespace
}  // namespace test
