// Options that say which rows a rank owns.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/inputs.h"
#include "moe/tensor.h"

namespace CLI {
class App;
}

namespace moe::tools {

struct RankOf {
  int64_t rank, num_ranks;
};

class WindowOptions {
 public:
  void add(CLI::App& app);
  // The same without --num-experts.
  void add_window(CLI::App& app);

  // The window that was asked for, if any; a rank's from `tokens_per_expert` or `indices` of the
  // files. Throws UsageError.
  std::optional<EpRange> window(const Inputs& inputs) const;
  // The same, with the tokens of each expert from somewhere else.
  std::optional<EpRange> window(const std::function<std::vector<int64_t>()>& counts) const;
  std::optional<RankOf> rank() const;
  std::optional<int64_t> num_experts() const { return num_experts_; }

 private:
  std::string ep_range_, ep_rank_;
  std::optional<int64_t> num_experts_;
};

// How many slots name each expert: `tokens_per_expert` of the files, or counted from `indices`;
// without `num_experts` up to the last one named. Throws UsageError where neither is there.
std::vector<int64_t> expert_counts(const Inputs& inputs, std::optional<int64_t> num_experts);

}  // namespace moe::tools
