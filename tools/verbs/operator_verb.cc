// permute, permute-grad, unpermute, unpermute-grad: files in, files out.
#include <CLI/CLI.hpp>

#include "cli/describe.h"
#include "cli/input_options.h"
#include "cli/operator_settings.h"
#include "cli/progress.h"
#include "operators/run.h"
#include "verbs/verbs.h"

namespace moe::tools {
namespace {

std::string footer(const Operator& op) {
  std::string lines = "Reads:\n";
  for (const Input& input : op.inputs) {
    lines += text("  ", input.name, " ", input.shape, input.required ? "" : ", optional", "\n");
  }
  lines += "Writes:\n";
  for (const char* output : op.outputs) lines += text("  ", output, "\n");
  return lines + text("\nFor instance:\n  moe-permute ", op.verb,
                      " in.safetensors --ep-range 4096:8192 -o out.safetensors\n  moe-permute ",
                      op.verb, " dumps/ --ep-rank 1/8 --num-experts 64 -o out/");
}

class OperatorVerb final : public Verb {
 public:
  explicit OperatorVerb(const Operator& op) : op_(op) {}

  const char* name() const override { return op_.verb; }
  std::string summary() const override { return op_.title; }

  void add_options(CLI::App& app) override {
    inputs_.add(app);
    app.add_option("-o,--output", output_path_,
                   "Where results go: FILE.safetensors, a folder (FOLDER/) of .npy files, or "
                   "FILE.npy for a single tensor")
        ->required()
        ->type_name("OUT");
    settings_.add(app);
    app.footer(footer(op_));
  }

  int run(Output& output) override {
    Progress progress(!output.quiet);
    progress.stage("reading");
    const Inputs inputs = inputs_.open();
    const Operands operands = operands_for(op_, inputs);
    const Planned planned = op_.plan(operands, settings_.resolve(inputs, op_));
    const std::vector<StoredTensor> results = stored_outputs(planned);
    OutputFiles files(output_path_, results);
    progress.stage(op_.verb);
    const double seconds = run_into(planned, places_of(files, results.size()));
    progress.stage("writing");
    files.commit();
    report(output, planned, results, files, seconds);
    return kOk;
  }

 private:
  static std::vector<std::byte*> places_of(const OutputFiles& files, size_t count) {
    std::vector<std::byte*> places;
    for (size_t i = 0; i < count; ++i) places.push_back(files.data(i));
    return places;
  }

  void report(Output& output, const Planned& planned, const std::vector<StoredTensor>& results,
              const OutputFiles& files, double seconds) const {
    output.line(op_.verb, ": ", describe(planned.sizes));
    output.line("kernel ", planned.kernel, ", ", seconds_text(seconds));
    for (const StoredTensor& tensor : results) output.line("  ", describe(tensor));
    for (const std::string& path : files.paths()) output.line("wrote ", printable(path));
    output.facts["case"] = to_json(planned.sizes);
    output.facts["kernel"] = planned.kernel;
    output.facts["seconds"] = seconds;
    output.facts["outputs"] = to_json(results);
    output.facts["files"] = files.paths();
  }

  const Operator& op_;
  InputOptions inputs_;
  OperatorSettings settings_;
  std::string output_path_;
};

}  // namespace

std::unique_ptr<Verb> operator_verb(const Operator& op) {
  return std::make_unique<OperatorVerb>(op);
}

}  // namespace moe::tools
