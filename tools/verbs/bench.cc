// bench: operators beside the floor of the machine, on a case of one's own.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "case_run.h"
#include "cli/case_options.h"
#include "cli/describe.h"
#include "cli/input_options.h"
#include "cli/progress.h"
#include "cli/ranges.h"
#include "cli/routing_input.h"
#include "draw/bench_picture.h"
#include "draw/svg.h"
#include "files/pending_file.h"
#include "problems.h"
#include "verbs/verbs.h"

namespace moe::tools {
namespace {

constexpr const char* kFooter =
    "The floor of a case is the fastest plain pass over as many bytes; the share of the floor is "
    "how\n"
    "near an operator comes to it. With files, their indices are the routing and their tokens "
    "give\n"
    "hidden size and dtype. Keep the machine quiet meanwhile.\n"
    "\nFor instance:\n"
    "  moe-permute bench --shape deepseek-v3 --num-tokens 4096 --dtype bfloat16 --ep-rank 1/8\n"
    "  moe-permute bench in.safetensors --operator permute --svg chart.svg";

// "permute-grad" is "permute_with_ep_grad" there.
const bench::Op& bench_op(const std::string& verb) {
  const std::string name = find_operator(verb).verb;
  const size_t dash = name.find('-');
  return bench::find_op(name.substr(0, dash) + "_with_ep" +
                        (dash == std::string::npos ? "" : "_grad"));
}

class BenchVerb final : public Verb {
 public:
  const char* name() const override { return "bench"; }
  std::string summary() const override {
    return "Measure operators beside the floor of this machine";
  }

  void add_options(CLI::App& app) override {
    inputs_.add(app, false);
    app.add_option("--operator", operators_, "Which; may come again. All four without it")
        ->type_name("OPERATOR")
        ->take_all()
        ->allow_extra_args(false);
    case_.add(app);
    app.add_option("--seconds", seconds_, "Of measuring, for each operator")
        ->check(between(0.01, 600.0))
        ->type_name("S")
        ->capture_default_str();
    app.add_option("--svg", svg_path_, "Draw the chart")->type_name("FILE.svg");
    app.footer(kFooter);
  }

  int run(Output& output) override;

 private:
  bench::Case described_case() const;
  bench::Case case_of_files() const;
  void set_rank(bench::Case& c) const;
  void report(Output& output, const std::string& verb, const bench::OpProblem& problem,
              const bench::CaseFigures& figures);

  InputOptions inputs_;
  CaseOptions case_;
  std::vector<std::string> operators_;
  double seconds_ = 0.4;
  std::string svg_path_;
  std::vector<BenchBar> bars_;
};

void BenchVerb::set_rank(bench::Case& c) const {
  const auto rank = case_.window().rank();
  c.rank = rank ? rank->rank : 0;
  c.num_ranks = rank ? rank->num_ranks : 1;
  c.rank_name = rank ? text(rank->rank, "of", rank->num_ranks) : "all";
  if (c.dtype == DType::kF64) throw UsageError("--dtype float64: is not measured; take float32");
  if (c.num_tokens < 1 || c.hidden_size < 1) throw UsageError("bench: the case is empty");
}

bench::Case BenchVerb::described_case() const {
  const CaseSizes sizes = case_.sizes();
  bench::Case c{};
  c.shape = case_.shape().empty() ? "case" : case_.shape();
  c.hidden_size = sizes.hidden_size;
  c.num_experts = sizes.num_experts;
  c.top_k = sizes.top_k;
  c.num_tokens = sizes.num_tokens;
  c.dtype = *facts(case_.dtype()).operand;
  c.routing = case_.routing_name();
  c.experts = case_.routing().experts;
  set_rank(c);
  return c;
}

bench::Case BenchVerb::case_of_files() const {
  const Inputs inputs = inputs_.open();
  const RoutingView routing = routing_of_files(inputs, case_);
  if (routing.experts.empty())
    throw UsageError("bench: needs indices in the files, not counts alone");
  if (routing.num_unrouted > 0) throw UsageError("bench: needs every slot to be routed");
  const StoredTensor* tokens = inputs.find("tokens");
  bench::Case c{};
  c.shape = "files";
  c.hidden_size =
      tokens && tokens->shape.size() == 2 ? tokens->shape[1] : case_.sizes().hidden_size;
  c.num_experts = routing.num_experts;
  c.top_k = routing.top_k;
  c.num_tokens = routing.num_tokens;
  c.dtype = tokens ? operand_of(*tokens).desc.dtype : *facts(case_.dtype()).operand;
  c.routing = "own";
  c.experts = {routing.experts.begin(), routing.experts.end()};
  set_rank(c);
  return c;
}

void BenchVerb::report(Output& output, const std::string& verb, const bench::OpProblem& problem,
                       const bench::CaseFigures& figures) {
  const bench::Measured& m = figures.measured;
  const double speed = static_cast<double>(figures.bytes_moved) / m.operator_seconds;
  char line[160];
  std::snprintf(line, sizeof line, "%-15s %9s %10s %10s/s %10s %7.2f  %s", verb.c_str(),
                bytes_text(static_cast<double>(figures.bytes_moved)).c_str(),
                seconds_text(m.operator_seconds).c_str(), bytes_text(speed).c_str(),
                seconds_text(m.floor_seconds).c_str(), m.share_of_floor(),
                problem.kernel_name().c_str());
  output.line(line, verb == "permute"
                        ? text(", and ", seconds_text(figures.apart_seconds), " of sorting")
                        : "");
  output.facts["operators"].push_back(
      {{"operator", verb},
       {"kernel", problem.kernel_name()},
       {"bytes", figures.bytes_moved},
       {"seconds", m.operator_seconds},
       {"bytes_per_second", speed},
       {"floor_seconds", m.floor_seconds},
       {"share_of_floor", m.share_of_floor()},
       {"sort_seconds", verb == "permute" ? figures.apart_seconds : 0},
       {"rounds", m.num_rounds}});
  bars_.push_back({verb, m.operator_seconds, m.floor_seconds});
}

int BenchVerb::run(Output& output) {
  if (!svg_path_.empty()) check_picture(svg_path_);
  Progress progress(!output.quiet);
  std::vector<std::string> verbs = operators_;
  if (verbs.empty()) {
    for (const Operator& op : all_operators()) verbs.push_back(op.verb);
  }
  for (const std::string& verb : verbs) bench_op(verb);  // a wrong name shows at once
  const bench::Case c = inputs_.given() ? case_of_files() : described_case();
  output.line(c.name(), ": top_k ", c.top_k, ", ", c.num_experts, " experts, hidden_size ",
              c.hidden_size, "; ", num_threads(), num_threads() == 1 ? " thread" : " threads");
  output.line("operator            bytes       time          speed      floor   share  kernel");
  output.facts["case"] = {{"name", c.name()},
                          {"num_tokens", c.num_tokens},
                          {"top_k", c.top_k},
                          {"num_experts", c.num_experts},
                          {"hidden_size", c.hidden_size},
                          {"dtype", dtype_name(c.dtype)},
                          {"rank", c.rank},
                          {"num_ranks", c.num_ranks}};
  output.facts["threads"] = num_threads();
  bench::Memory memory;
  for (size_t i = 0; i < verbs.size(); ++i) {
    progress.stage(text("measuring ", verbs[i], ", ", i + 1, " of ", verbs.size()));
    const auto problem = bench_op(verbs[i]).make(c, memory);
    report(output, verbs[i], *problem, bench::run_case(*problem, c, memory, seconds_, false));
  }
  if (!svg_path_.empty()) {
    write_file(svg_path_, draw_bench(c.name(), bars_));
    output.line("wrote ", printable(svg_path_));
    output.facts["files"] = {svg_path_};
  }
  return kOk;
}

}  // namespace

std::unique_ptr<Verb> bench_verb() { return std::make_unique<BenchVerb>(); }

}  // namespace moe::tools
