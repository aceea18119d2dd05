// verify: recomputes an operator, compares with somebody's results, and says what went wrong.
#include <CLI/CLI.hpp>

#include "cli/describe.h"
#include "cli/input_options.h"
#include "cli/operator_settings.h"
#include "cli/progress.h"
#include "cli/ranges.h"
#include "cli/tensor_values.h"
#include "verbs/verbs.h"
#include "verify/diagnosis.h"
#include "verify/numbers.h"
#include "verify/place.h"

namespace moe::tools {
namespace {

constexpr const char* kFooter =
    "OPERATOR is permute, permute-grad, unpermute or unpermute-grad; its inputs and outputs have "
    "the\n"
    "names that moe-permute OPERATOR --help lists. Whatever outputs the other files hold are "
    "compared.\n"
    "\nFor instance:\n"
    "  moe-permute verify permute-grad in.safetensors --ep-range 4096:8192 --against "
    "theirs.safetensors\n"
    "  moe-permute verify unpermute dumps/ --against out=theirs.npy --against-as out=bfloat16\n"
    "\nExit code 0: equal bits, or at most --ulps apart. 1: not.";

// What was found about one output.
struct Finding {
  const StoredTensor& ours;
  const StoredTensor& theirs;
  Difference difference;
};

class VerifyVerb final : public Verb {
 public:
  const char* name() const override { return "verify"; }
  std::string summary() const override {
    return "Check somebody's results, and say what is wrong with them";
  }

  void add_options(CLI::App& app) override {
    app.add_option("operator", operator_, "What the results are of")
        ->required()
        ->type_name("OPERATOR");
    inputs_.add(app);
    app.add_option("--against", against_, "The results to check: files as above; may come again")
        ->required()
        ->type_name("[NAME=]FILE")
        ->take_all()
        ->allow_extra_args(false);
    app.add_option("--against-as", against_as_, "Like --as, for the results")
        ->type_name("NAME=DTYPE")
        ->take_all()
        ->allow_extra_args(false);
    app.add_option("--ulps", ulps_, "Accept differences of so many units in the last place")
        ->check(between(uint64_t{0}, UINT64_MAX))
        ->type_name("N");
    settings_.add(app);
    app.footer(kFooter);
  }

  int run(Output& output) override;

 private:
  Suspect suspect_of(const Operator& op, const Operands& operands, const Settings& settings,
                     const Planned& planned, const std::vector<StoredTensor>& ours,
                     const Inputs& inputs) const;
  std::vector<Finding> compare_all(const Suspect& suspect) const;
  bool accepted(const Difference& difference) const {
    return difference.same_kind && difference.num_nan == 0 && difference.max_ulps <= ulps_ &&
           (ulps_ > 0 || difference.equal());
  }

  std::string operator_;
  InputOptions inputs_;
  std::vector<std::string> against_, against_as_;
  uint64_t ulps_ = 0;
  OperatorSettings settings_;
};

// Theirs, row-major; copies live in `storage`.
std::map<std::string, StoredTensor> their_outputs(const Inputs& against, const Planned& planned,
                                                  std::vector<std::vector<std::byte>>& storage) {
  std::map<std::string, StoredTensor> theirs;
  for (const OutputSpec& spec : planned.outputs) {
    const StoredTensor* found = against.find(spec.name);
    if (!found) continue;
    storage.emplace_back();
    StoredTensor tensor = *found;
    tensor.bytes = row_major(tensor, storage.back());
    tensor.fortran_order = false;
    theirs[spec.name] = tensor;
  }
  if (!theirs.empty()) return theirs;
  std::string wanted;
  for (const OutputSpec& spec : planned.outputs) wanted += (wanted.empty() ? "" : ", ") + spec.name;
  throw UsageError(text("--against: nothing to check, the files hold ", against.names(),
                        "; needs one of ", wanted, "; name it: ", planned.outputs[0].name,
                        "=FILE"));
}

Suspect VerifyVerb::suspect_of(const Operator& op, const Operands& operands,
                               const Settings& settings, const Planned& planned,
                               const std::vector<StoredTensor>& ours, const Inputs& inputs) const {
  Suspect suspect{op, operands, settings, planned.sizes, ours, {}, settings_.window().rank(),
                  {}, {},       {}};
  if (suspect.rank) suspect.counts = expert_counts(inputs, settings_.window().num_experts());
  if (const StoredTensor* indices = suspect.our("sorted_indices")) {
    suspect.rows = integers(*indices);
    suspect.experts = integers(*inputs.find("indices"));
  } else {
    suspect.rows = integers(*inputs.find("sorted_indices"));
  }
  return suspect;
}

std::vector<Finding> VerifyVerb::compare_all(const Suspect& suspect) const {
  std::vector<Finding> findings;
  for (const StoredTensor& ours : suspect.ours) {
    const auto theirs = suspect.theirs.find(ours.name);
    if (theirs == suspect.theirs.end()) continue;
    findings.push_back({ours, theirs->second, compare(ours, theirs->second)});
  }
  return findings;
}

void report_numbers(Output& output, const Suspect& suspect, const Finding& finding, Json& facts) {
  const Difference& d = finding.difference;
  const Place place = place_of(suspect, finding.ours, d.first);
  output.line("  ", finding.ours.name, ": ", d.num_different, " of ", d.num_elements,
              " elements differ", d.num_nan ? text(", ", d.num_nan, " where one is NaN") : "",
              d.num_zero_signs ? text(", ", d.num_zero_signs, " in the sign of a zero") : "");
  if (is_float(finding.ours.dtype)) {
    output.line("    error in units in the last place: max ", d.max_ulps, ", mean ", d.mean_ulps);
  }
  const std::string got = element_text(finding.theirs, d.first);
  const std::string want = element_text(finding.ours, d.first);
  output.line("    first: ", place.words, ": got ", got, ", want ", want);
  facts.update({{"num_nan", d.num_nan},
                {"num_zero_signs", d.num_zero_signs},
                {"max_ulps", d.max_ulps},
                {"mean_ulps", d.mean_ulps},
                {"first", place.facts}});
  facts["first"].update({{"got", got}, {"want", want}});
}

void report(Output& output, const Suspect& suspect, const Finding& finding) {
  const Difference& d = finding.difference;
  Json facts = {{"name", finding.ours.name},
                {"equal", d.equal()},
                {"num_elements", d.num_elements},
                {"num_different", d.num_different}};
  if (!d.same_kind) {
    output.line("  ", finding.ours.name, ": ", shape_text(finding.theirs.shape), " ",
                moe::tools::facts(finding.theirs.dtype).name, ", but it should be ",
                shape_text(finding.ours.shape), " ", moe::tools::facts(finding.ours.dtype).name);
    facts["got"] = to_json(finding.theirs);
    facts["want"] = to_json(finding.ours);
  } else if (d.equal()) {
    output.line("  ", finding.ours.name, ": equal, all ", d.num_elements, " elements");
  } else {
    report_numbers(output, suspect, finding, facts);
  }
  output.facts["outputs"].push_back(facts);
}

const char* quality_text(Match quality) {
  switch (quality) {
    case Match::kEqual:
      return "bit for bit";
    case Match::kRounding:
      return "within rounding";
    default:
      return "within coarse rounding";
  }
}

const char* quality_id(Match quality) {
  return quality == Match::kEqual ? "exact" : quality == Match::kRounding ? "rounding" : "coarse";
}

void report(Output& output, const Diagnosis& diagnosis) {
  output.facts["hypotheses_tried"] = diagnosis.num_tried;
  output.facts["cause"] =
      diagnosis.explanations.empty() ? "unexplained" : diagnosis.explanations[0].id;
  output.facts["explanations"] = Json::array();
  if (diagnosis.explanations.empty()) {
    output.line("cause: unexplained (", diagnosis.num_tried, " hypotheses tried)");
  }
  const char* word = "cause: ";
  for (const Explanation& each : diagnosis.explanations) {
    std::string tensors;
    for (const std::string& name : each.tensors) tensors += (tensors.empty() ? "" : ", ") + name;
    output.line(word, each.id, ": ", each.mistake);
    output.line("  ", each.detail);
    output.line("  explains all of ", tensors, ", ", quality_text(each.quality));
    output.facts["explanations"].push_back({{"id", each.id},
                                            {"mistake", each.mistake},
                                            {"detail", each.detail},
                                            {"match", quality_id(each.quality)},
                                            {"outputs", each.tensors}});
    word = "or: ";
  }
}

// What a valid forward never makes, and explains much where it is there.
void report_index_trouble(Output& output, const Suspect& suspect) {
  if (suspect.is("permute") || !inverse(suspect.rows).empty() || suspect.rows.empty()) return;
  const char* note = "sorted_indices is no permutation of the rows: see --check-indices";
  output.line("note: ", note);
  output.facts["note"] = note;
}

int VerifyVerb::run(Output& output) {
  Progress progress(!output.quiet);
  progress.stage("reading");
  const Operator& op = find_operator(operator_);
  const Inputs inputs = inputs_.open(), against(against_, against_as_);
  const Operands operands = operands_for(op, inputs);
  Settings settings = settings_.resolve(inputs, op);
  const StoredTensor* indices = against.find("sorted_indices");
  if (indices && indices->dtype == FileDType::kI64) settings.index_dtype = DType::kI64;
  const Planned planned = op.plan(operands, settings);
  settings.top_k = planned.sizes.top_k;
  progress.stage("recomputing");
  const Results ours(planned);
  Suspect suspect = suspect_of(op, operands, settings, planned, ours.tensors(), inputs);
  std::vector<std::vector<std::byte>> storage;
  suspect.theirs = their_outputs(against, planned, storage);
  progress.stage("comparing");
  const std::vector<Finding> findings = compare_all(suspect);

  output.line("verify ", op.verb, ": ", describe(planned.sizes));
  output.facts["operator"] = op.verb;
  output.facts["case"] = to_json(planned.sizes);
  output.facts["outputs"] = Json::array();
  bool all_accepted = true, all_equal = true;
  for (const Finding& finding : findings) {
    report(output, suspect, finding);
    all_accepted &= accepted(finding.difference);
    all_equal &= finding.difference.equal();
  }
  output.facts["equal"] = all_equal;
  output.facts["accepted"] = all_accepted;
  if (all_accepted) {
    output.line(all_equal ? "equal"
                          : text("accepted: at most ", ulps_, " units in the last place apart"));
    return kOk;
  }
  report_index_trouble(output, suspect);
  report(output, diagnose(suspect, [&](int64_t done, int64_t all) {
           progress.stage(text("trying hypothesis ", done + 1, " of ", all));
         }));
  return kDifference;
}

}  // namespace

std::unique_ptr<Verb> verify_verb() { return std::make_unique<VerifyVerb>(); }

}  // namespace moe::tools
