// tensors: what files hold; and the same tensors in other files.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstring>

#include "cli/describe.h"
#include "cli/input_options.h"
#include "cli/progress.h"
#include "cli/tensor_values.h"
#include "files/output_files.h"
#include "verbs/verbs.h"
#include "verify/numbers.h"

namespace moe::tools {
namespace {

constexpr const char* kFooter =
    "For instance:\n"
    "  moe-permute tensors dump.safetensors\n"
    "  moe-permute tensors dump.safetensors -o dump/\n"
    "  moe-permute tensors tokens=x.npy --as tokens=bfloat16 -o in.safetensors";

struct Extent {
  double min = INFINITY, max = -INFINITY;
  int64_t num_not_finite = 0;
};

Extent extent_of(const StoredTensor& tensor) {
  Extent extent;
  const auto count = num_elements(tensor);
  for (int64_t i = 0; i < count; ++i) {
    const double value = load_number(tensor.dtype, tensor.bytes.data(), i);
    if (!std::isfinite(value)) {
      ++extent.num_not_finite;
    } else {
      extent.min = std::min(extent.min, value);
      extent.max = std::max(extent.max, value);
    }
  }
  return extent;
}

class TensorsVerb final : public Verb {
 public:
  const char* name() const override { return "tensors"; }
  std::string summary() const override { return "List the tensors of files, or convert the files"; }

  void add_options(CLI::App& app) override {
    inputs_.add(app);
    app.add_option("-o,--output", output_path_,
                   "Write them: FILE.safetensors, a folder (FOLDER/) of .npy files, or FILE.npy")
        ->type_name("OUT");
    app.footer(kFooter);
  }

  int run(Output& output) override {
    Progress progress(!output.quiet);
    progress.stage("reading");
    const Inputs inputs = inputs_.open();
    output.facts["tensors"] = Json::array();
    for (const auto& [name, tensor] : inputs.tensors()) list(output, tensor);
    if (inputs.tensors().empty()) output.line("no tensors");
    if (!output_path_.empty()) {
      progress.stage("writing");
      copy(output, inputs);
    }
    return kOk;
  }

 private:
  static void list(Output& output, const StoredTensor& tensor) {
    Json facts = to_json(tensor);
    facts["fortran_order"] = tensor.fortran_order;
    std::string words = describe(tensor) + (tensor.fortran_order ? ", Fortran order" : "");
    if (is_number(tensor.dtype) && !tensor.bytes.empty()) {
      const Extent extent = extent_of(tensor);
      if (extent.min <= extent.max) {
        words += text(", from ", extent.min, " to ", extent.max);
        facts.update({{"min", extent.min}, {"max", extent.max}});
      }
      if (extent.num_not_finite) words += text(", ", extent.num_not_finite, " not finite");
      facts["num_not_finite"] = extent.num_not_finite;
    }
    output.line(words);
    output.facts["tensors"].push_back(facts);
  }

  void copy(Output& output, const Inputs& inputs) const {
    std::vector<StoredTensor> tensors;
    for (const auto& [name, tensor] : inputs.tensors()) tensors.push_back(tensor);
    OutputFiles files(output_path_, tensors);
    for (size_t i = 0; i < tensors.size(); ++i) {
      std::vector<std::byte> storage;
      const auto bytes = row_major(tensors[i], storage);
      if (!bytes.empty()) std::memcpy(files.data(i), bytes.data(), bytes.size());
    }
    files.commit();
    for (const std::string& path : files.paths()) output.line("wrote ", printable(path));
    output.facts["files"] = files.paths();
  }

  InputOptions inputs_;
  std::string output_path_;
};

}  // namespace

std::unique_ptr<Verb> tensors_verb() { return std::make_unique<TensorsVerb>(); }

}  // namespace moe::tools
