#include "cli/help.h"

#include <CLI/CLI.hpp>
#include <sstream>

#include "files/text.h"

namespace moe::tools {
namespace {

constexpr size_t kColumn = 26, kWidth = 96;

// `words` from column kColumn on, in lines of at most kWidth, behind what stands before them.
std::string entry(const std::string& before, const std::string& words) {
  std::string out = "  " + before, line;
  if (out.size() + 1 > kColumn) {
    out += "\n" + std::string(kColumn, ' ');
  } else {
    out.append(kColumn - out.size(), ' ');
  }
  std::istringstream all(words);
  for (std::string word; all >> word;) {
    if (!line.empty() && kColumn + line.size() + 1 + word.size() > kWidth) {
      out += line + "\n" + std::string(kColumn, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return out + line + "\n";
}

std::string option_entry(const OptionFacts& option) {
  std::string names;
  for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + name;
  if (option.has_place) names = option.value;
  if (!option.has_place && !option.value.empty()) names += " " + option.value;
  const std::string fallback = option.fallback.empty() ? "" : " (" + option.fallback + ")";
  return entry(names, option.description + fallback);
}

class OwnHelp final : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    return app->get_parent() ? help_of_verb(verb_of(*app)) : help_of_program(*app);
  }
};

}  // namespace

std::string synopsis(const VerbFacts& verb) {
  std::string line = "moe-permute " + verb.name;
  for (const OptionFacts& option : verb.options) {
    if (option.has_place) line += option.required ? " " + option.value : " [" + option.value + "]";
  }
  for (const OptionFacts& option : verb.options) {
    if (!option.has_place && option.required)
      line += " " + option.names.front() + " " + option.value;
  }
  return line + " [options]";
}

std::string help_of_program(const CLI::App& app) {
  std::string help = app.get_description() + "\n\nusage: moe-permute VERB ...\n\nverbs:\n";
  for (const VerbFacts& verb : verbs_of(app)) help += entry(verb.name, verb.summary);
  help += "\noptions:\n";
  for (const OptionFacts& option : options_of(app)) help += option_entry(option);
  return help + "\n" + app.get_footer() + "\n";
}

std::string help_of_verb(const VerbFacts& verb) {
  std::string places, options;
  for (const OptionFacts& option : verb.options) {
    (option.has_place ? places : options) += option_entry(option);
  }
  return text(verb.summary, ".\n\nusage: ", synopsis(verb), "\n\n", places,
              places.empty() ? "" : "\n", "options:\n", options, "\n", verb.footer, "\n");
}

void use_own_help(CLI::App& app) { app.formatter(std::make_shared<OwnHelp>()); }

}  // namespace moe::tools
