#include "cli/case_options.h"

#include <CLI/CLI.hpp>

#include "cli/errors.h"
#include "cli/models.h"
#include "cli/ranges.h"
#include "files/text.h"

namespace moe::tools {
namespace {

constexpr int64_t kMostTokens = int64_t{1} << 28;
constexpr int64_t kMostExperts = 1 << 20;
constexpr int64_t kMostHidden = int64_t{1} << 24;

FileDType float_dtype(const std::string& option, const std::string& name) {
  const DTypeFacts* found = find_dtype(name);
  if (found && found->operand && *found->operand != DType::kI32 && *found->operand != DType::kI64) {
    return found->dtype;
  }
  throw UsageError(
      text(option, " ", printable(name), ": needs float32, float16, bfloat16 or float64"));
}

// The experts that a rank owns.
EpRange experts_of(const RankOf& rank, int64_t num_experts) {
  return {rank.rank * num_experts / rank.num_ranks, (rank.rank + 1) * num_experts / rank.num_ranks};
}

}  // namespace

void CaseOptions::add(CLI::App& app) {
  app.add_option("--shape", shape_, "Take top_k, experts and hidden size from: " + model_names())
      ->type_name("MODEL");
  app.add_option("--num-tokens", num_tokens_, "Tokens (T)")
      ->check(between(int64_t{0}, kMostTokens))
      ->type_name("T")
      ->capture_default_str();
  app.add_option("--top-k", top_k_, "Experts per token (K); 2 without --shape")
      ->check(between(int64_t{1}, kMostExperts))
      ->type_name("K");
  app.add_option("--num-experts", num_experts_, "Experts (E); 8 without --shape")
      ->check(between(int64_t{1}, kMostExperts))
      ->type_name("E");
  app.add_option("--hidden-size", hidden_size_, "Elements of a token (H); 64 without --shape")
      ->check(between(int64_t{0}, kMostHidden))
      ->type_name("H");
  app.add_option("--dtype", dtype_, "Of the tokens: float32, float16, bfloat16, float64")
      ->type_name("DTYPE")
      ->capture_default_str();
  app.add_option("--probs-dtype", probs_dtype_, "Of the probs")
      ->type_name("DTYPE")
      ->capture_default_str();
  app.add_option("--routing", routing_,
                 "uniform; zipf: few experts get most; all-to-one: every slot goes to expert 0; "
                 "empty-rank: the rank of --ep-rank gets nothing")
      ->check(CLI::IsMember({"uniform", "zipf", "all-to-one", "empty-rank"}).description(""))
      ->type_name("ROUTING")
      ->capture_default_str();
  app.add_option("--seed", seed_, "Another seed, other numbers")
      ->check(between(uint64_t{0}, UINT64_MAX))
      ->type_name("N")
      ->capture_default_str();
  window_.add_window(app);
}

EpRange CaseOptions::window_in(int64_t num_slots,
                               const std::vector<int64_t>& tokens_per_expert) const {
  const auto range = window_.window([&] { return tokens_per_expert; });
  if (!range) return {0, num_slots};
  if (range->begin < 0 || range->begin > range->end || range->end > num_slots) {
    throw UsageError(text("--ep-range ", range->begin, ":", range->end,
                          ": needs 0 <= BEGIN <= END <= ", num_slots));
  }
  return *range;
}

CaseSizes CaseOptions::sizes() const {
  CaseSizes sizes{num_tokens_, 2, 8, 64};
  if (!shape_.empty()) {
    const Model& model = find_model(shape_);
    sizes = {num_tokens_, model.top_k, model.num_experts, model.hidden_size};
  }
  sizes.top_k = top_k_.value_or(sizes.top_k);
  sizes.num_experts = num_experts_.value_or(sizes.num_experts);
  sizes.hidden_size = hidden_size_.value_or(sizes.hidden_size);
  if (sizes.top_k > sizes.num_experts && routing_ != "all-to-one") {
    throw UsageError(text("--top-k ", sizes.top_k,
                          ": a token names different experts, but there are ", sizes.num_experts,
                          " (--num-experts)"));
  }
  if (sizes.num_tokens * sizes.top_k > INT32_MAX) {
    throw UsageError(text("--num-tokens ", sizes.num_tokens, ": times top_k ", sizes.top_k,
                          " makes 2^31 slots or more"));
  }
  return sizes;
}

FileDType CaseOptions::dtype() const { return float_dtype("--dtype", dtype_); }
FileDType CaseOptions::probs_dtype() const { return float_dtype("--probs-dtype", probs_dtype_); }

bench::Routing CaseOptions::routing() const {
  const auto idle = window_.rank();
  const CaseSizes s = sizes();
  const auto slots = static_cast<size_t>(s.num_tokens * s.top_k);
  if (routing_ == "all-to-one") {
    return bench::routing_from(std::vector<int32_t>(slots, 0), s.num_experts);
  }
  if (routing_ != "empty-rank") {
    return bench::route(routing_, s.num_tokens, s.num_experts, s.top_k, seed_);
  }
  if (!idle) throw UsageError("--routing empty-rank: say which rank: --ep-rank RANK/RANKS");
  const EpRange none = experts_of(*idle, s.num_experts);
  const int64_t left = s.num_experts - (none.end - none.begin);
  if (left < s.top_k) {
    throw UsageError(
        text("--routing empty-rank: ", left, " experts are left, but top_k is ", s.top_k));
  }
  std::vector<int32_t> experts =
      bench::route("uniform", s.num_tokens, left, s.top_k, seed_).experts;
  for (int32_t& expert : experts) {
    if (expert >= none.begin) expert += static_cast<int32_t>(none.end - none.begin);
  }
  return bench::routing_from(std::move(experts), s.num_experts);
}

}  // namespace moe::tools
