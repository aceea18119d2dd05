// The smallest whole round trip: four tokens of one number to four experts on two ranks, and back.
// Prints what every step gave as JSON, which scripts/draw_round_trip turns into the picture of
// docs/round-trip.md.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "moe/moe.h"

namespace {

using moe::DType, moe::TensorDesc;

constexpr int64_t kNumTokens = 4, kTopK = 2, kNumSlots = kNumTokens * kTopK;
constexpr int64_t kNumExperts = 4, kNumRanks = 2;
constexpr int64_t kCapacity = 4;  // rows of every rank's buffers, however many it receives

const std::vector<float> kTokens = {1, 2, 3, 4};
// The second slot of the last token is not routed: the router dropped it.
const std::vector<int32_t> kExperts = {2, 0, 0, 3, 2, 1, 0, -1};
const std::vector<float> kProbs = {0.75f, 0.25f, 0.5f, 0.5f, 0.5f, 0.5f, 0.75f, 0.25f};

template <class Plan>
void run(const Plan& plan, const typename Plan::Pointers& pointers) {
  std::vector<char> workspace(plan.workspace_bytes());
  plan.bind(pointers).run(workspace.data());
}

struct Routing {
  std::vector<int32_t> sorted_indices = std::vector<int32_t>(kNumSlots);
  std::vector<int32_t> tokens_per_expert = std::vector<int32_t>(kNumExperts);
};

Routing sort_by_expert() {
  Routing routing;
  run(moe::SortByExpert::plan({
          .indices = TensorDesc::contiguous(DType::kI32, {kNumTokens, kTopK}),
          .num_experts = kNumExperts,
          .sorted_indices = TensorDesc::contiguous(DType::kI32, {kNumSlots}),
          .tokens_per_expert = TensorDesc::contiguous(DType::kI32, {kNumExperts}),
      }),
      {.indices = kExperts.data(),
       .sorted_indices = routing.sorted_indices.data(),
       .tokens_per_expert = routing.tokens_per_expert.data()});
  return routing;
}

struct Rank {
  moe::EpRange window;
  std::vector<float> rows = std::vector<float>(kCapacity);
  std::vector<float> expert_rows = std::vector<float>(kCapacity);
  std::vector<float> out = std::vector<float>(kNumTokens);
};

void permute(Rank& rank) {
  std::vector<int32_t> sorted_indices(kNumSlots);
  run(moe::PermuteWithEp::plan({
          .tokens = TensorDesc::contiguous(DType::kF32, {kNumTokens, 1}),
          .indices = TensorDesc::contiguous(DType::kI32, {kNumTokens, kTopK}),
          .ep_range = rank.window,
          .num_experts = kNumExperts,
          .permuted_tokens = TensorDesc::contiguous(DType::kF32, {kCapacity, 1}),
          .sorted_indices = TensorDesc::contiguous(DType::kI32, {kNumSlots}),
      }),
      {.tokens = kTokens.data(),
       .indices = kExperts.data(),
       .permuted_tokens = rank.rows.data(),
       .sorted_indices = sorted_indices.data()});
}

// Expert e multiplies by e + 1.
void apply_experts(Rank& rank, const std::vector<int32_t>& tokens_per_expert) {
  for (int64_t e = 0; e < kNumExperts; ++e) {
    const moe::EpRange own = moe::expert_range(tokens_per_expert, e, e + 1);
    for (int64_t row = own.begin; row < own.end; ++row) {
      if (row < rank.window.begin || row >= rank.window.end) continue;
      const int64_t r = row - rank.window.begin;
      rank.expert_rows[r] = static_cast<float>(e + 1) * rank.rows[r];
    }
  }
}

void unpermute(Rank& rank, const std::vector<int32_t>& sorted_indices) {
  run(moe::UnpermuteWithEp::plan({
          .permuted_tokens = TensorDesc::contiguous(DType::kF32, {kCapacity, 1}),
          .sorted_indices = TensorDesc::contiguous(DType::kI32, {kNumSlots}),
          .probs = TensorDesc::contiguous(DType::kF32, {kNumTokens, kTopK}),
          .top_k = kTopK,
          .ep_range = rank.window,
          .out = TensorDesc::contiguous(DType::kF32, {kNumTokens, 1}),
      }),
      {.permuted_tokens = rank.expert_rows.data(),
       .sorted_indices = sorted_indices.data(),
       .probs = kProbs.data(),
       .out = rank.out.data()});
}

template <class T>
std::string json(const std::vector<T>& values) {
  std::string text;
  for (T value : values) {
    char number[32];
    std::snprintf(number, sizeof number, "%g", static_cast<double>(value));
    text += (text.empty() ? "" : ", ") + std::string(number);
  }
  return "[" + text + "]";
}

}  // namespace

int main() {
  const Routing routing = sort_by_expert();
  std::printf("{\"top_k\": %d,\n \"tokens\": %s,\n \"experts\": %s,\n \"probs\": %s,\n",
              static_cast<int>(kTopK), json(kTokens).c_str(), json(kExperts).c_str(),
              json(kProbs).c_str());
  std::printf(" \"sorted_indices\": %s,\n \"tokens_per_expert\": %s,\n \"ranks\": [",
              json(routing.sorted_indices).c_str(), json(routing.tokens_per_expert).c_str());
  for (int64_t r = 0; r < kNumRanks; ++r) {
    Rank rank{moe::ep_range_of_rank(routing.tokens_per_expert, r, kNumRanks)};
    permute(rank);
    apply_experts(rank, routing.tokens_per_expert);
    unpermute(rank, routing.sorted_indices);
    std::printf("%s\n  {\"ep_range\": [%d, %d], \"rows\": %s, \"expert_rows\": %s, \"out\": %s}",
                r == 0 ? "" : ",", static_cast<int>(rank.window.begin),
                static_cast<int>(rank.window.end), json(rank.rows).c_str(),
                json(rank.expert_rows).c_str(), json(rank.out).c_str());
  }
  std::printf("\n ]}\n");
}
