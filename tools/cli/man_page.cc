#include <CLI/CLI.hpp>

#include "cli/app_facts.h"
#include "cli/help.h"
#include "cli/manual.h"
#include "files/pending_file.h"
#include "files/text.h"

namespace moe::tools {
namespace {

// Text of a manual page: no line begins with a request, hyphens are those of a command line.
std::string roff(const std::string& words) {
  std::string out;
  for (const char c : words) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += std::string("\\&") + c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string option_entry(const OptionFacts& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += text(names.empty() ? "" : ", ", "\\fB", roff(name), "\\fR");
  }
  const std::string value = option.value.empty() ? "" : text(" \\fI", roff(option.value), "\\fR");
  return text(".TP\n", option.has_place ? text("\\fI", roff(option.value), "\\fR") : names + value,
              "\n", roff(option.description), ".",
              option.fallback.empty() ? "" : text(" Default: ", roff(option.fallback), "."), "\n");
}

std::string verb_section(const VerbFacts& verb) {
  std::string page = text(".SS ", roff(verb.name), "\n", roff(verb.summary), ".\n.PP\n",
                          roff(synopsis(verb)), "\n");
  for (const OptionFacts& option : verb.options) {
    if (option.names.back() != "--help") page += option_entry(option);
  }
  return page + text(".PP\n.nf\n", roff(verb.footer), "\n.fi\n");
}

}  // namespace

std::string man_page(const CLI::App& app) {
  std::string page =
      text(".TH MOE\\-PERMUTE 1 \"\" \"moe\\-permute ", MOE_VERSION, "\"\n.SH NAME\n",
           "moe\\-permute \\- run, check, explain and measure token permutation\n",
           ".SH SYNOPSIS\n\\fBmoe\\-permute\\fR \\fIVERB\\fR [options]\n", ".SH DESCRIPTION\n",
           roff(app.get_description()), "\n.SH VERBS\n");
  for (const VerbFacts& verb : verbs_of(app)) page += verb_section(verb);
  return page +
         text(".SH NOTES\n.nf\n", roff(app.get_footer()), "\n.fi\n",
              ".SH ENVIRONMENT\n.TP\n\\fBMOE_KERNEL\\fR\nForces a kernel, as \\-\\-kernel does.\n",
              ".TP\n\\fBMOE_NUM_THREADS\\fR\nMost threads to use, as \\-\\-threads says.\n");
}

void write_manual(const CLI::App& app, const std::string& folder) {
  write_file(folder + "/moe-permute.1", man_page(app));
  write_file(folder + "/moe-permute.bash", bash_completion(app));
  write_file(folder + "/_moe-permute", zsh_completion(app));
  write_file(folder + "/moe-permute.fish", fish_completion(app));
}

}  // namespace moe::tools
