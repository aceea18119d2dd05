// Why somebody's results differ from ours.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "verify/compare.h"
#include "verify/hypothesis.h"

namespace moe::tools {

struct Explanation {
  std::string id, mistake, detail;
  Match quality = Match::kNone;
  std::vector<std::string> tensors;  // that differ and that it explains
};

struct Diagnosis {
  // Best first. With several that explain everything, the data cannot tell them apart; none means
  // "unexplained".
  std::vector<Explanation> explanations;
  int64_t num_tried = 0;
};

// `on_step(done, all)` is called between the hypotheses.
Diagnosis diagnose(const Suspect& suspect, const std::function<void(int64_t, int64_t)>& on_step);

}  // namespace moe::tools
