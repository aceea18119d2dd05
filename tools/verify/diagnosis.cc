#include "verify/diagnosis.h"

#include <algorithm>

#include "verify/numbers.h"

namespace moe::tools {
namespace {

// Above this, the first hypothesis that explains everything ends the search.
constexpr size_t kManyBytes = size_t{64} << 20;

const StoredTensor* find(const std::vector<OwnedTensor>& tensors, const std::string& name) {
  for (const OwnedTensor& owned : tensors) {
    if (owned.tensor.name == name) return &owned.tensor;
  }
  return nullptr;
}

using Matches = std::map<std::string, Match>;

Matches matches_of(const Suspect& s, const Outcome& outcome) {
  Matches matches;
  for (const auto& [name, given] : s.theirs) {
    const StoredTensor* expected = find(outcome.expected, name);
    const StoredTensor* theirs = find(outcome.theirs, name);
    matches[name] =
        match(expected ? *expected : *s.our(name), theirs ? *theirs : given, s.num_terms(name));
  }
  return matches;
}

class Search {
 public:
  explicit Search(const Suspect& s) : s_(s), before_(matches_of(s, {})) {
    for (const auto& [name, theirs] : s.theirs) {
      num_bytes_ += theirs.bytes.size();
      if (!compare(*s.our(name), theirs).equal()) differing_.push_back(name);
    }
  }

  bool done() const {
    if (all_.empty() || all_.front().quality != Match::kEqual) return false;
    return num_bytes_ > kManyBytes || zero_signs_only();
  }

  void attempt(const Hypothesis& hypothesis, const Variant& variant) {
    const auto outcome = variant.make();
    if (!outcome) return;
    const Matches now = matches_of(s_, *outcome);
    Explanation found{hypothesis.id, hypothesis.mistake, variant.detail, Match::kEqual, {}};
    for (const std::string& name : differing_) {
      if (!better(name, now.at(name))) continue;
      found.tensors.push_back(name);
      found.quality = std::min(found.quality, now.at(name));
    }
    if (found.tensors.empty()) return;
    const bool everything = found.tensors.size() == differing_.size() && leaves_equal(now);
    (everything ? all_ : some_).push_back(std::move(found));
    sort(all_);
  }

  std::vector<Explanation> result() {
    if (!all_.empty()) return best_of(all_);
    if (rounding_only()) return {rounding()};
    return one_for_each();
  }

 private:
  // Then whatever changes nothing would explain it, too.
  bool zero_signs_only() const {
    return std::all_of(differing_.begin(), differing_.end(),
                       [&](const auto& name) { return before_.at(name) == Match::kEqual; });
  }

  // What rounding alone would explain, a mistake explains only bit for bit.
  bool better(const std::string& name, Match now) const {
    return now == Match::kEqual || now > before_.at(name);
  }

  // Equal tensors stay as good as they were.
  bool leaves_equal(const Matches& now) const {
    return std::all_of(now.begin(), now.end(), [&](const auto& each) {
      return each.second >= before_.at(each.first) || each.second >= Match::kRounding;
    });
  }

  static void sort(std::vector<Explanation>& explanations) {
    std::stable_sort(explanations.begin(), explanations.end(), [](const auto& a, const auto& b) {
      return std::pair(a.quality, a.tensors.size()) > std::pair(b.quality, b.tensors.size());
    });
  }

  static std::vector<Explanation> best_of(const std::vector<Explanation>& sorted) {
    std::vector<Explanation> best;
    for (const Explanation& each : sorted) {
      if (each.quality == sorted.front().quality) best.push_back(each);
    }
    return best;
  }

  bool rounding_only() const {
    return std::all_of(differing_.begin(), differing_.end(),
                       [&](const auto& name) { return before_.at(name) >= Match::kCoarse; });
  }

  Explanation rounding() const {
    Match worst = Match::kEqual;
    for (const std::string& name : differing_) worst = std::min(worst, before_.at(name));
    if (worst == Match::kCoarse) {
      return {"coarse-rounding", "results differ by coarse rounding",
              text("the errors have the size that adding in ", dtype_name(s_.sizes.dtype),
                   " would make, in an order that none tried here gives"),
              worst, differing_};
    }
    return {"rounding", "results differ by rounding alone",
            "the errors have the size of float32's rounding, from an order of additions that none "
            "tried here gives",
            worst, differing_};
  }

  // The best explanation of each tensor that has one.
  std::vector<Explanation> one_for_each() {
    sort(some_);
    std::vector<Explanation> chosen;
    for (const std::string& name : differing_) {
      for (const Explanation& each : some_) {
        if (std::count(each.tensors.begin(), each.tensors.end(), name) == 0) continue;
        chosen.push_back(each);
        chosen.back().tensors = {name};
        break;
      }
    }
    return chosen;
  }

  const Suspect& s_;
  const Matches before_;
  std::vector<std::string> differing_;
  size_t num_bytes_ = 0;
  std::vector<Explanation> all_, some_;
};

}  // namespace

Diagnosis diagnose(const Suspect& suspect, const std::function<void(int64_t, int64_t)>& on_step) {
  Search search(suspect);
  Diagnosis diagnosis;
  const auto& hypotheses = all_hypotheses();
  for (size_t i = 0; i < hypotheses.size() && !search.done(); ++i) {
    on_step(static_cast<int64_t>(i), static_cast<int64_t>(hypotheses.size()));
    for (const Variant& variant : hypotheses[i].variants(suspect)) {
      search.attempt(hypotheses[i], variant);
      ++diagnosis.num_tried;
    }
  }
  diagnosis.explanations = search.result();
  return diagnosis;
}

}  // namespace moe::tools
