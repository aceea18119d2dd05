// One expert-parallel rank of a DeepSeek-V3 layer: the gradient of the token permutation on rank 1
// of 8, checked against a naive loop and timed next to a plain copy of as many bytes.
//
//   deepseek_rank [bf16|f32]
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "moe/moe.h"

namespace {

constexpr int64_t kNumTokens = 4096;
constexpr int64_t kTopK = 8;
constexpr int64_t kHiddenSize = 7168;
constexpr int64_t kNumExperts = 256;
constexpr int64_t kNumRanks = 8;
constexpr int64_t kRank = 1;
constexpr uint32_t kSeed = 1;
constexpr int kTimedRuns = 15;

struct Float32 {
  static constexpr moe::DType kDType = moe::DType::kF32;
  static constexpr const char* kName = "float32";
  using Bits = float;
  static Bits encode(float value) { return value; }
  static float decode(Bits bits) { return bits; }
};

struct Bfloat16 {
  static constexpr moe::DType kDType = moe::DType::kBF16;
  static constexpr const char* kName = "bfloat16";
  using Bits = uint16_t;
  static float decode(Bits bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
  // To nearest, ties to even; the values here are finite.
  static Bits encode(float value) {
    const auto wide = std::bit_cast<uint32_t>(value);
    return static_cast<Bits>((wide + 0x7fff + ((wide >> 16) & 1)) >> 16);
  }
};

struct Routing {
  std::vector<int32_t> sorted_indices;  // [T*K]: the row of each slot once rows are in expert order
  moe::EpRange window;                  // the rows that this rank's experts own
};

// Every token goes to kTopK different experts, each with the same chance.
std::vector<int32_t> choose_experts(std::mt19937& random) {
  std::vector<int32_t> chosen;
  std::vector<int32_t> all(kNumExperts);
  std::iota(all.begin(), all.end(), 0);
  for (int64_t t = 0; t < kNumTokens; ++t) {
    for (int64_t k = 0; k < kTopK; ++k) {
      std::swap(all[k], all[k + random() % (kNumExperts - k)]);
      chosen.push_back(all[k]);
    }
  }
  return chosen;
}

Routing route(std::mt19937& random) {
  const std::vector<int32_t> experts = choose_experts(random);
  std::vector<int32_t> order(experts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return experts[a] < experts[b]; });
  Routing routing;
  routing.sorted_indices.resize(order.size());
  for (size_t row = 0; row < order.size(); ++row) routing.sorted_indices[order[row]] = row;
  const auto slots_below = [&](int64_t expert) {
    return std::count_if(experts.begin(), experts.end(), [&](int64_t e) { return e < expert; });
  };
  routing.window = {.begin = slots_below(kRank * kNumExperts / kNumRanks),
                    .end = slots_below((kRank + 1) * kNumExperts / kNumRanks)};
  return routing;
}

template <class Element>
struct Tensors {
  std::vector<typename Element::Bits> permuted_tokens_grad, tokens_grad;
  std::vector<float> permuted_probs_grad, probs_grad;
};

template <class Element>
Tensors<Element> make_tensors(int64_t num_rows, std::mt19937& random) {
  const auto value = [&] { return static_cast<float>(random() % 2048) / 1024 - 1; };
  Tensors<Element> x;
  x.permuted_tokens_grad.resize(num_rows * kHiddenSize);
  x.permuted_probs_grad.resize(num_rows);
  std::generate(x.permuted_tokens_grad.begin(), x.permuted_tokens_grad.end(),
                [&] { return Element::encode(value()); });
  std::generate(x.permuted_probs_grad.begin(), x.permuted_probs_grad.end(), value);
  x.tokens_grad.resize(kNumTokens * kHiddenSize);
  x.probs_grad.resize(kNumTokens * kTopK);
  return x;
}

template <class Element>
moe::PermuteWithEpGrad make_plan(const Routing& routing) {
  using moe::DType, moe::TensorDesc;
  const int64_t num_rows = routing.window.end - routing.window.begin;
  return moe::PermuteWithEpGrad::plan({
      .permuted_tokens_grad =
          TensorDesc::contiguous(Element::kDType, {num_rows, int64_t{kHiddenSize}}),
      .sorted_indices = TensorDesc::contiguous(DType::kI32, {kNumTokens * kTopK}),
      .permuted_probs_grad = TensorDesc::contiguous(DType::kF32, {num_rows}),
      .top_k = kTopK,
      .ep_range = routing.window,
      .tokens_grad = TensorDesc::contiguous(Element::kDType, {kNumTokens, kHiddenSize}),
      .probs_grad = TensorDesc::contiguous(DType::kF32, {kNumTokens, kTopK}),
  });
}

// The formula as it stands in the operator's header, one element at a time.
template <class Element>
bool agrees_with_formula(const Routing& routing, const Tensors<Element>& x) {
  const auto [begin, end] = routing.window;
  for (int64_t t = 0; t < kNumTokens; ++t) {
    std::vector<float> sum(kHiddenSize);
    for (int64_t k = 0; k < kTopK; ++k) {
      const int64_t row = routing.sorted_indices[t * kTopK + k];
      const bool inside = begin <= row && row < end;
      if (x.probs_grad[t * kTopK + k] != (inside ? x.permuted_probs_grad[row - begin] : 0.0f)) {
        return false;
      }
      for (int64_t h = 0; inside && h < kHiddenSize; ++h) {
        sum[h] += Element::decode(x.permuted_tokens_grad[(row - begin) * kHiddenSize + h]);
      }
    }
    for (int64_t h = 0; h < kHiddenSize; ++h) {
      if (x.tokens_grad[t * kHiddenSize + h] != Element::encode(sum[h])) return false;
    }
  }
  return true;
}

// What the memory gives: a copy on as many threads as the operator uses.
void plain_copy(const std::vector<char>& from, std::vector<char>& to) {
  const size_t num_threads = moe::num_threads();
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < num_threads; ++i) {
    const size_t begin = from.size() * i / num_threads, end = from.size() * (i + 1) / num_threads;
    threads.emplace_back([&, begin, end] { std::memcpy(&to[begin], &from[begin], end - begin); });
  }
}

template <class Work>
double seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

template <class Element>
int run() {
  std::mt19937 random(kSeed);
  const Routing routing = route(random);
  const int64_t num_rows = routing.window.end - routing.window.begin;
  Tensors<Element> x = make_tensors<Element>(num_rows, random);

  const moe::PermuteWithEpGrad plan = make_plan<Element>(routing);
  std::vector<char> workspace(plan.workspace_bytes());
  const moe::BoundCall call = plan.bind({.permuted_tokens_grad = x.permuted_tokens_grad.data(),
                                         .sorted_indices = routing.sorted_indices.data(),
                                         .permuted_probs_grad = x.permuted_probs_grad.data(),
                                         .tokens_grad = x.tokens_grad.data(),
                                         .probs_grad = x.probs_grad.data()});
  call.run(workspace.data());
  const bool right = agrees_with_formula(routing, x);

  const size_t row_bytes = kHiddenSize * sizeof(typename Element::Bits);
  const size_t num_bytes =
      (num_rows + kNumTokens) * row_bytes + (num_rows + 2 * kNumTokens * kTopK) * sizeof(float);
  std::vector<char> from(num_bytes / 2, 1), to(num_bytes / 2);
  // Taken in turns, so that whatever else the machine does falls on both.
  std::vector<double> times, ratios;
  for (int i = 0; i < kTimedRuns; ++i) {
    const double copy_time = seconds([&] { plain_copy(from, to); });
    times.push_back(seconds([&] { call.run(workspace.data()); }));
    ratios.push_back(copy_time / times.back());
  }

  std::printf("%s: T %lld, K %lld, H %lld, window [%lld, %lld), kernel %s, %d threads\n",
              Element::kName, static_cast<long long>(kNumTokens), static_cast<long long>(kTopK),
              static_cast<long long>(kHiddenSize), static_cast<long long>(routing.window.begin),
              static_cast<long long>(routing.window.end), plan.kernel_name().c_str(),
              moe::num_threads());
  std::printf("  %.2f ms, %.1f GB/s: %.2f times the speed of a plain copy of as many bytes\n",
              median(times) * 1e3, num_bytes / median(times) / 1e9, median(ratios));
  std::printf("  %s\n", right ? "agrees with the naive formula in every bit"
                              : "WRONG: differs from the naive formula");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view dtype = argc > 1 ? argv[1] : "bf16";
  if (dtype == "bf16") return run<Bfloat16>();
  if (dtype == "f32") return run<Float32>();
  std::fprintf(stderr, "usage: deepseek_rank [bf16|f32]\n");
  return 2;
}
