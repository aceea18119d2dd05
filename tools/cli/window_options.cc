#include "cli/window_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "cli/errors.h"
#include "cli/ranges.h"
#include "cli/tensor_values.h"
#include "files/text.h"
#include "moe/expert_range.h"

namespace moe::tools {
namespace {

// An expert id beyond this would ask for gigabytes of counts; routers have thousands at most.
constexpr int64_t kMostExperts = int64_t{1} << 24;

// "A<separator>B"
std::optional<std::pair<int64_t, int64_t>> two_numbers(const std::string& given, char separator) {
  std::pair<int64_t, int64_t> numbers;
  const char* end = given.data() + given.size();
  const auto first = std::from_chars(given.data(), end, numbers.first);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != separator) return {};
  const auto second = std::from_chars(first.ptr + 1, end, numbers.second);
  if (second.ec != std::errc() || second.ptr != end) return {};
  return numbers;
}

EpRange parse_range(const std::string& given) {
  const auto numbers = two_numbers(given, ':');
  if (!numbers) {
    throw UsageError("--ep-range " + printable(given) +
                     ": needs BEGIN:END, for instance 4096:8192");
  }
  return {numbers->first, numbers->second};
}

RankOf parse_rank(const std::string& given) {
  const auto numbers = two_numbers(given, '/');
  // Products with numbers of experts stay below 2^63 then.
  if (!numbers || numbers->first < 0 || numbers->first >= numbers->second ||
      numbers->second > kMostExperts) {
    throw UsageError(text("--ep-rank ", printable(given),
                          ": needs RANK/RANKS with 0 <= RANK < RANKS <= ", kMostExperts,
                          ", for instance 1/8"));
  }
  return {numbers->first, numbers->second};
}

std::vector<int64_t> count(const std::vector<int64_t>& experts,
                           std::optional<int64_t> num_experts) {
  int64_t last = -1;
  for (int64_t expert : experts) {
    if (expert <= INT32_MAX) last = std::max(last, expert);  // beyond that, it is not routed
  }
  const int64_t n = num_experts.value_or(last + 1);
  if (n > kMostExperts) {
    throw UsageError(text("indices: expert ", n - 1, ", but at most ", kMostExperts,
                          " experts are counted; give --num-experts"));
  }
  std::vector<int64_t> counts(static_cast<size_t>(n));
  for (int64_t expert : experts) {
    if (expert >= 0 && expert < n) ++counts[static_cast<size_t>(expert)];
  }
  return counts;
}

}  // namespace

void WindowOptions::add(CLI::App& app) {
  add_window(app);
  app.add_option("--num-experts", num_experts_,
                 "How many experts there are, where the last ones may have no token")
      ->check(between(int64_t{0}, kMostExperts))
      ->type_name("E");
}

void WindowOptions::add_window(CLI::App& app) {
  auto* range = app.add_option("--ep-range", ep_range_,
                               "The window of global rows that this rank owns, for instance "
                               "4096:8192; without a window, all rows");
  range->type_name("BEGIN:END");
  app.add_option("--ep-rank", ep_rank_,
                 "The window of a rank, counted from 0, for instance 1/8; needs indices or "
                 "tokens_per_expert in the files")
      ->type_name("RANK/RANKS")
      ->excludes(range);
}

std::optional<RankOf> WindowOptions::rank() const {
  if (ep_rank_.empty()) return {};
  return parse_rank(ep_rank_);
}

std::optional<EpRange> WindowOptions::window(const Inputs& inputs) const {
  return window([&] { return expert_counts(inputs, num_experts_); });
}

std::optional<EpRange> WindowOptions::window(
    const std::function<std::vector<int64_t>()>& counts_of) const {
  if (!ep_range_.empty()) return parse_range(ep_range_);
  const auto of = rank();
  if (!of) return {};
  const std::vector<int64_t> counts = counts_of();
  return ep_range_of_rank(std::span<const int64_t>(counts), of->rank, of->num_ranks);
}

std::vector<int64_t> expert_counts(const Inputs& inputs, std::optional<int64_t> num_experts) {
  if (const StoredTensor* counts = inputs.find("tokens_per_expert")) {
    std::vector<int64_t> values = integers(*counts);
    if (num_experts && *num_experts != static_cast<int64_t>(values.size())) {
      throw UsageError(text("--num-experts ", *num_experts, ": but tokens_per_expert has ",
                            values.size(), " experts"));
    }
    return values;
  }
  if (const StoredTensor* indices = inputs.find("indices")) {
    return count(integers(*indices), num_experts);
  }
  throw UsageError("--ep-rank: needs indices or tokens_per_expert, the files hold " +
                   inputs.names() + "; or give the window: --ep-range BEGIN:END");
}

}  // namespace moe::tools
