// gen: routings and random tensors into files.
#include <CLI/CLI.hpp>
#include <cstring>

#include "cli/case_options.h"
#include "cli/describe.h"
#include "cli/progress.h"
#include "files/output_files.h"
#include "gen/random.h"
#include "verbs/verbs.h"

namespace moe::tools {
namespace {

constexpr const char* kFooter =
    "Makes whatever the operator of --for reads, with tokens_per_expert; --for all makes all of "
    "it.\n"
    "A window gives its number of rows to permuted tensors.\n"
    "\nFor instance:\n"
    "  moe-permute gen --shape deepseek-v3 --num-tokens 4096 --dtype bfloat16 -o in.safetensors\n"
    "  moe-permute gen --for permute-grad --num-tokens 64 --routing zipf --ep-rank 1/8 -o case/\n"
    "  moe-permute gen --tensor x=float8_e4m3:3x5 --tensor y=int64:7 -o any.safetensors";

// A tensor to be made, and how.
struct Wanted {
  StoredTensor tensor;
  std::function<void(std::span<std::byte>)> fill;
};

template <class Ints>
std::function<void(std::span<std::byte>)> copy_of(const Ints& values) {
  return [&values](std::span<std::byte> to) {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<int32_t>(values[i]);
      std::memcpy(to.data() + 4 * i, &value, sizeof value);
    }
  };
}

class GenVerb final : public Verb {
 public:
  const char* name() const override { return "gen"; }
  std::string summary() const override { return "Make routings and random tensors"; }

  void add_options(CLI::App& app) override {
    app.add_option("-o,--output", output_path_,
                   "FILE.safetensors, a folder (FOLDER/) of .npy files, or FILE.npy for one tensor")
        ->required()
        ->type_name("OUT");
    app.add_option("--for", for_, "permute, permute-grad, unpermute, unpermute-grad or all")
        ->check(CLI::IsMember({"permute", "permute-grad", "unpermute", "unpermute-grad", "all"})
                    .description(""))
        ->type_name("OPERATOR")
        ->capture_default_str();
    case_.add(app);
    app.add_option("--tensor", tensors_, "Random tensors of any type and shape instead")
        ->type_name("NAME=DTYPE:AxB")
        ->take_all()
        ->allow_extra_args(false);
    app.footer(kFooter);
  }

  int run(Output& output) override;

 private:
  EpRange window_in(const bench::Routing& routing) const {
    return case_.window_in(static_cast<int64_t>(routing.experts.size()), routing.rows_per_expert);
  }
  bool reads(const char* tensor) const;
  void want(const char* name, FileDType dtype, std::vector<int64_t> shape,
            std::function<void(std::span<std::byte>)> fill = {});
  void want_case(const bench::Routing& routing);
  void want_tensor(const std::string& option);

  std::string output_path_, for_ = "permute";
  CaseOptions case_;
  std::vector<std::string> tensors_;
  std::vector<Wanted> wanted_;
};

bool GenVerb::reads(const char* tensor) const {
  if (for_ == "all") return true;
  for (const Input& input : find_operator(for_).inputs) {
    if (std::strcmp(input.name, tensor) == 0) return true;
  }
  return false;
}

void GenVerb::want(const char* name, FileDType dtype, std::vector<int64_t> shape,
                   std::function<void(std::span<std::byte>)> fill) {
  if (!fill) {
    fill = [dtype, seed = seed_for(case_.seed(), name)](std::span<std::byte> to) {
      fill_random(dtype, to, seed);
    };
  }
  wanted_.push_back({{.name = name, .dtype = dtype, .shape = std::move(shape), .bytes = {}}, fill});
}

void GenVerb::want_case(const bench::Routing& routing) {
  const CaseSizes s = case_.sizes();
  const EpRange range = window_in(routing);
  const int64_t rows = range.end - range.begin;
  const FileDType dtype = case_.dtype(), probs = case_.probs_dtype();
  const std::vector<int64_t> row_shape = {rows, s.hidden_size};
  const std::vector<int64_t> token_shape = {s.num_tokens, s.hidden_size};
  if (reads("tokens")) want("tokens", dtype, token_shape);
  if (reads("indices")) {
    want("indices", FileDType::kI32, {s.num_tokens, s.top_k}, copy_of(routing.experts));
  }
  if (reads("probs")) {
    want("probs", probs, {s.num_tokens, s.top_k},
         [probs, k = s.top_k, seed = seed_for(case_.seed(), "probs")](std::span<std::byte> to) {
           fill_probs(probs, to, k, seed);
         });
  }
  if (reads("sorted_indices")) {
    want("sorted_indices", FileDType::kI32, {s.num_tokens * s.top_k},
         copy_of(routing.sorted_indices));
  }
  if (for_ != "unpermute-grad" && reads("permuted_tokens_grad")) {
    want("permuted_tokens_grad", dtype, row_shape);
  }
  if (reads("permuted_probs_grad")) want("permuted_probs_grad", probs, {rows});
  if (reads("permuted_tokens")) want("permuted_tokens", dtype, row_shape);
  if (reads("unpermuted_tokens_grad")) want("unpermuted_tokens_grad", dtype, token_shape);
  want("tokens_per_expert", FileDType::kI32, {s.num_experts}, copy_of(routing.rows_per_expert));
}

// "x=float8_e4m3:3x5"
void GenVerb::want_tensor(const std::string& option) {
  const size_t equals = option.find('='), colon = option.find(':', equals);
  const DTypeFacts* dtype =
      equals == std::string::npos
          ? nullptr
          : find_dtype(option.substr(
                equals + 1, colon == std::string::npos ? std::string::npos : colon - equals - 1));
  if (!dtype) {
    throw UsageError("--tensor " + printable(option) + ": needs NAME=DTYPE:AxB, as x=float32:3x5");
  }
  std::vector<int64_t> shape;
  std::string listed = colon == std::string::npos ? "" : option.substr(colon + 1);
  if (listed.ends_with('x')) listed += '?';  // a size that is missing is no size
  std::stringstream sizes(listed);
  for (std::string size; std::getline(sizes, size, 'x');) {
    if (size.empty() || size.size() > 15 ||
        size.find_first_not_of("0123456789") != std::string::npos) {
      throw UsageError("--tensor " + printable(option) + ": its shape needs to be as 3x5");
    }
    shape.push_back(std::stoll(size));
  }
  if (!tensor_bytes(dtype->dtype, shape)) {
    throw UsageError(text("--tensor ", printable(option), ": ", shape_text(shape), " of ",
                          dtype->bits, " bits is no whole number of bytes below 2^63"));
  }
  want(option.substr(0, equals).c_str(), dtype->dtype, shape);
}

int GenVerb::run(Output& output) {
  Progress progress(!output.quiet);
  bench::Routing routing;
  if (tensors_.empty()) {
    progress.stage("routing");
    routing = case_.routing();
    want_case(routing);
  }
  for (const std::string& option : tensors_) want_tensor(option);
  std::vector<StoredTensor> tensors;
  for (const Wanted& each : wanted_) tensors.push_back(each.tensor);
  OutputFiles files(output_path_, tensors);
  for (size_t i = 0; i < wanted_.size(); ++i) {
    progress.stage("making " + printable(tensors[i].name));
    const auto num_bytes = tensor_bytes(tensors[i].dtype, tensors[i].shape).value();
    wanted_[i].fill({files.data(i), static_cast<size_t>(num_bytes)});
  }
  progress.stage("writing");
  files.commit();
  for (const StoredTensor& tensor : tensors) output.line("  ", describe(tensor));
  for (const std::string& path : files.paths()) output.line("wrote ", printable(path));
  if (tensors_.empty()) {
    const EpRange range = window_in(routing);
    output.facts["ep_range"] = {range.begin, range.end};
    output.facts["seed"] = case_.seed();
    if (const auto rank = case_.window().rank()) {
      output.line("rank ", rank->rank, " of ", rank->num_ranks, ": --ep-range ", range.begin, ":",
                  range.end);
    }
  }
  output.facts["tensors"] = to_json(tensors);
  output.facts["files"] = files.paths();
  return kOk;
}

}  // namespace

std::unique_ptr<Verb> gen_verb() { return std::make_unique<GenVerb>(); }

}  // namespace moe::tools
