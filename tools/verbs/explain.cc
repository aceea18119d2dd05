// explain: the plan of a case, and where its slots go.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/bandwidth.h"
#include "cli/case_options.h"
#include "cli/describe.h"
#include "cli/engine_options.h"
#include "cli/input_options.h"
#include "cli/progress.h"
#include "cli/ranges.h"
#include "cli/routing_input.h"
#include "operators/traffic.h"
#include "verbs/verbs.h"

namespace moe::tools {
namespace {

constexpr int64_t kMostSlotsInTable = 128;
constexpr const char* kFooter =
    "Of files, or of a case that the options describe. With --measure, the time that moving the\n"
    "bytes takes at least on this machine. Up to 128 slots, a table says where each goes.\n"
    "\nFor instance:\n"
    "  moe-permute explain permute-grad in.safetensors --ep-rank 1/8\n"
    "  moe-permute explain unpermute --shape deepseek-v3 --num-tokens 4096 --dtype bfloat16 "
    "--measure";

// A tensor of a described case: its place in memory does not matter to a plan.
Operand operand(FileDType dtype, std::initializer_list<int64_t> shape) {
  return {TensorDesc::contiguous(*facts(dtype).operand, shape), nullptr};
}

Operands described_operands(const CaseOptions& options, const EpRange& window) {
  const CaseSizes s = options.sizes();
  const int64_t rows = window.end - window.begin;
  const FileDType dtype = options.dtype(), probs = options.probs_dtype();
  return {{"tokens", operand(dtype, {s.num_tokens, s.hidden_size})},
          {"indices", operand(FileDType::kI32, {s.num_tokens, s.top_k})},
          {"probs", operand(probs, {s.num_tokens, s.top_k})},
          {"sorted_indices", operand(FileDType::kI32, {s.num_tokens * s.top_k})},
          {"permuted_tokens", operand(dtype, {rows, s.hidden_size})},
          {"permuted_tokens_grad", operand(dtype, {rows, s.hidden_size})},
          {"permuted_probs_grad", operand(probs, {rows})},
          {"unpermuted_tokens_grad", operand(dtype, {s.num_tokens, s.hidden_size})}};
}

class ExplainVerb final : public Verb {
 public:
  const char* name() const override { return "explain"; }
  std::string summary() const override { return "Show the plan of a case and where its slots go"; }

  void add_options(CLI::App& app) override {
    app.add_option("operator", operator_, "permute, permute-grad, unpermute or unpermute-grad")
        ->required()
        ->type_name("OPERATOR");
    inputs_.add(app, false);
    case_.add(app);
    app.add_option("--ranks", num_ranks_, "Show whose window each slot is in, of so many ranks")
        ->check(between(1, 1 << 20))
        ->type_name("N");
    app.add_flag("--measure", measure_, "Measure how fast this machine moves bytes");
    add_engine_options(app, engine_);
    app.footer(kFooter);
  }

  int run(Output& output) override {
    Progress progress(!output.quiet);
    const Operator& op = find_operator(operator_);
    const Inputs inputs = inputs_.open();
    std::optional<RoutingView> routing;
    Settings settings{
        .top_k = case_.given_top_k(), .num_experts = case_.given_num_experts(), .engine = engine_};
    Operands operands;
    if (inputs_.given()) {
      operands = operands_for(op, inputs);
      settings.ep_range =
          case_.window().window([&] { return expert_counts(inputs, case_.given_num_experts()); });
      if (inputs.find("indices")) routing = routing_of_files(inputs, case_);
    } else {
      routing = routing_of_options(case_);
      settings.ep_range = case_.window_in(routing->num_slots(), routing->tokens_per_expert);
      operands = described_operands(case_, *settings.ep_range);
      settings.num_experts = routing->num_experts;
    }
    const Planned planned = op.plan(operands, settings);
    report_plan(output, op, operands, planned);
    if (measure_) {
      progress.stage("measuring");
      report_floor(output, traffic_of(op, operands, planned));
    }
    if (routing && routing->num_slots() <= kMostSlotsInTable) {
      report_map(output, *routing, planned.sizes.window);
    }
    return kOk;
  }

 private:
  void report_plan(Output& output, const Operator& op, const Operands& operands,
                   const Planned& planned) const;
  void report_floor(Output& output, const Traffic& traffic) const;
  void report_map(Output& output, const RoutingView& routing, const EpRange& window) const;

  std::string operator_;
  InputOptions inputs_;
  CaseOptions case_;
  int num_ranks_ = 0;
  bool measure_ = false;
  Engine engine_;
};

Json desc_json(const std::string& name, const TensorDesc& desc) {
  const auto* shape = desc.shape.data();
  return {{"name", name},
          {"dtype", dtype_name(desc.dtype)},
          {"shape", std::vector<int64_t>(shape, shape + desc.num_dims)}};
}

std::string desc_text(const std::string& name, const TensorDesc& desc) {
  const auto dims = static_cast<size_t>(desc.num_dims);
  return text(name, " ", shape_text({desc.shape.data(), dims}), " ", dtype_name(desc.dtype));
}

void ExplainVerb::report_plan(Output& output, const Operator& op, const Operands& operands,
                              const Planned& planned) const {
  output.line(op.verb, ": ", describe(planned.sizes));
  output.facts["operator"] = op.verb;
  output.facts["case"] = to_json(planned.sizes);
  for (const Input& input : op.inputs) {
    const auto desc = desc_of(operands, input.name);
    if (!desc) continue;
    output.line("  reads  ", desc_text(input.name, *desc));
    output.facts["inputs"].push_back(desc_json(input.name, *desc));
  }
  for (const OutputSpec& spec : planned.outputs) {
    output.line("  writes ", desc_text(spec.name, spec.desc));
    output.facts["outputs"].push_back(desc_json(spec.name, spec.desc));
  }
  output.line("kernel ", planned.kernel, ", workspace ", planned.workspace_bytes, " bytes");
  output.facts["kernel"] = planned.kernel;
  output.facts["workspace_bytes"] = planned.workspace_bytes;
  std::stringstream notes(planned.kernel_notes);
  for (std::string note; std::getline(notes, note);) {
    output.line("  ", note);
    output.facts["kernels"].push_back(note);
  }
  const Traffic traffic = traffic_of(op, operands, planned);
  output.line("bytes to read at most ", traffic.bytes_read, ", to write ", traffic.bytes_written);
  output.facts["bytes_read"] = traffic.bytes_read;
  output.facts["bytes_written"] = traffic.bytes_written;
}

void ExplainVerb::report_floor(Output& output, const Traffic& traffic) const {
  const int threads = engine_.num_threads > 0 ? engine_.num_threads : num_threads();
  const Bandwidth bandwidth = measure_bandwidth(threads);
  const double seconds =
      static_cast<double>(traffic.bytes_read + traffic.bytes_written) / bandwidth.bytes_per_second;
  output.line("floor ", seconds_text(seconds), ": those bytes at ",
              bytes_text(bandwidth.bytes_per_second), " a second, measured with ", threads,
              threads == 1 ? " thread" : " threads");
  output.facts["floor"] = {{"seconds", seconds},
                           {"bytes_per_second", bandwidth.bytes_per_second},
                           {"threads", threads},
                           {"pass", bandwidth.pass}};
}

void ExplainVerb::report_map(Output& output, const RoutingView& routing,
                             const EpRange& window) const {
  const auto rank = case_.window().rank();
  const int64_t num_ranks = num_ranks_ ? num_ranks_ : rank ? rank->num_ranks : 0;
  output.line(" slot token k expert  row local", num_ranks ? "  rank" : "");
  output.facts["map"] = Json::array();
  for (int64_t slot = 0; slot < routing.num_slots(); ++slot) {
    const int64_t row = routing.sorted_indices[static_cast<size_t>(slot)];
    const int64_t expert = routing.experts[static_cast<size_t>(slot)];
    const int64_t local = row >= window.begin && row < window.end ? row - window.begin : -1;
    const int64_t owner = num_ranks ? routing.rank_of_row(row, num_ranks) : -1;
    char line[96];
    std::snprintf(line, sizeof line, "%5d %5d %1d %6d %4d %5s", static_cast<int>(slot),
                  static_cast<int>(slot / routing.top_k), static_cast<int>(slot % routing.top_k),
                  static_cast<int>(expert), static_cast<int>(row),
                  local < 0 ? "-" : std::to_string(local).c_str());
    output.line(line, num_ranks ? text("  ", owner < 0 ? "none" : std::to_string(owner)) : "");
    Json entry = {{"slot", slot},
                  {"token", slot / routing.top_k},
                  {"k", slot % routing.top_k},
                  {"expert", expert},
                  {"row", row}};
    entry["local_row"] = local < 0 ? Json() : Json(local);
    if (num_ranks) entry["rank"] = owner < 0 ? Json() : Json(owner);
    output.facts["map"].push_back(entry);
  }
}

}  // namespace

std::unique_ptr<Verb> explain_verb() { return std::make_unique<ExplainVerb>(); }

}  // namespace moe::tools
