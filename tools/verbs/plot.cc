// plot: a routing as a picture.
#include <CLI/CLI.hpp>

#include "cli/input_options.h"
#include "cli/progress.h"
#include "cli/ranges.h"
#include "draw/routing_picture.h"
#include "draw/svg.h"
#include "files/pending_file.h"
#include "verbs/verbs.h"

namespace moe::tools {
namespace {

constexpr const char* kFooter =
    "Bars are tokens per expert, bands the windows of ranks. Up to 48 slots and 16 tokens, lines "
    "show\n"
    "where each token's copies go. The picture is legible on light and on dark pages.\n"
    "\nFor instance:\n"
    "  moe-permute plot in.safetensors --ranks 8 -o routing.svg\n"
    "  moe-permute plot --shape deepseek-v3 --num-tokens 4096 --routing zipf --ranks 32 -o "
    "zipf.svg";

class PlotVerb final : public Verb {
 public:
  const char* name() const override { return "plot"; }
  std::string summary() const override {
    return "Draw a routing: experts, ranks, imbalance, copies";
  }

  void add_options(CLI::App& app) override {
    inputs_.add(app, false);
    app.add_option("-o,--output", output_path_, "Where the picture goes")
        ->required()
        ->type_name("FILE.svg");
    app.add_option("--ranks", num_ranks_, "Draw the windows of so many ranks")
        ->check(between(int64_t{1}, int64_t{4096}))
        ->type_name("N")
        ->capture_default_str();
    case_.add(app);
    app.footer(kFooter);
  }

  int run(Output& output) override {
    check_picture(output_path_);
    Progress progress(!output.quiet);
    progress.stage("drawing");
    const Inputs inputs = inputs_.open();
    const RoutingView routing =
        inputs_.given() ? routing_of_files(inputs, case_) : routing_of_options(case_);
    write_file(output_path_, draw_routing(routing, num_ranks_));
    report(output, routing);
    return kOk;
  }

 private:
  void report(Output& output, const RoutingView& routing) const {
    const Imbalance imbalance = imbalance_of(routing, num_ranks_);
    output.line(routing.num_experts, " experts: the largest has ", imbalance.largest_expert,
                " rows, ", decimal(imbalance.expert_factor()), " times the mean; ",
                imbalance.num_empty_experts, " empty");
    output.line(num_ranks_, num_ranks_ == 1 ? " rank" : " ranks", ": the largest has ",
                imbalance.largest_rank, " rows, ", decimal(imbalance.rank_factor()),
                " times the mean; ", imbalance.num_empty_ranks, " empty");
    output.line("wrote ", printable(output_path_));
    output.facts.update({{"num_experts", routing.num_experts},
                         {"tokens_per_expert", routing.tokens_per_expert},
                         {"largest_expert", imbalance.largest_expert},
                         {"expert_factor", imbalance.expert_factor()},
                         {"empty_experts", imbalance.num_empty_experts},
                         {"num_ranks", num_ranks_},
                         {"largest_rank", imbalance.largest_rank},
                         {"rank_factor", imbalance.rank_factor()},
                         {"empty_ranks", imbalance.num_empty_ranks},
                         {"unrouted_slots", routing.num_unrouted},
                         {"files", {output_path_}}});
  }

  InputOptions inputs_;
  CaseOptions case_;
  std::string output_path_;
  int64_t num_ranks_ = 1;
};

}  // namespace

std::unique_ptr<Verb> plot_verb() { return std::make_unique<PlotVerb>(); }

}  // namespace moe::tools
