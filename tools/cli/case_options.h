// Options that describe a case without files: sizes, dtypes, routing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/window_options.h"
#include "files/dtypes.h"
#include "routing.h"

namespace moe::tools {

struct CaseSizes {
  int64_t num_tokens = 0, top_k = 0, num_experts = 0, hidden_size = 0;
};

class CaseOptions {
 public:
  // With the options of a window, a rank's or not.
  void add(CLI::App& app);

  // What was given of the sizes, for cases whose tensors come from files.
  std::optional<int64_t> given_top_k() const { return top_k_; }
  std::optional<int64_t> given_num_experts() const { return num_experts_; }
  const WindowOptions& window() const { return window_; }
  // The window in a routing of so many slots; all rows where none is given. Throws UsageError.
  EpRange window_in(int64_t num_slots, const std::vector<int64_t>& tokens_per_expert) const;

  // Throws UsageError where the sizes do not fit each other.
  CaseSizes sizes() const;
  FileDType dtype() const;
  FileDType probs_dtype() const;
  // Where it is empty-rank, the rank of --ep-rank gets nothing.
  bench::Routing routing() const;
  const std::string& routing_name() const { return routing_; }
  const std::string& shape() const { return shape_; }
  uint64_t seed() const { return seed_; }

 private:
  std::string shape_, dtype_ = "float32", probs_dtype_ = "float32", routing_ = "uniform";
  int64_t num_tokens_ = 16;
  std::optional<int64_t> top_k_, num_experts_, hidden_size_;
  uint64_t seed_ = 1;
  WindowOptions window_;
};

}  // namespace moe::tools
