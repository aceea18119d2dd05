#include <CLI/CLI.hpp>
#include <map>

#include "cli/app_facts.h"
#include "cli/manual.h"
#include "cli/models.h"
#include "files/text.h"

namespace moe::tools {
namespace {

constexpr const char* kOperators = "permute permute-grad unpermute unpermute-grad";

// Values that an option may have, where those are few; a place's by its value's name.
std::string values_of(const OptionFacts& option) {
  std::string models = model_names();
  std::erase(models, ',');
  static const std::map<std::string, std::string> values = {
      {"OPERATOR", kOperators},
      {"MODEL", models},
      {"DTYPE", "float32 float16 bfloat16 float64"},
      {"ROUTING", "uniform zipf all-to-one empty-rank"}};
  const auto found = values.find(option.value);
  if (found == values.end()) return {};
  return option.names.back() == "--for" ? found->second + " all" : found->second;
}

bool names_file(const OptionFacts& option) {
  return option.value.find("FILE") != std::string::npos || option.value == "OUT";
}

std::string all_names(const VerbFacts& verb) {
  std::string names;
  for (const OptionFacts& option : verb.options) {
    if (option.has_place) continue;
    for (const std::string& name : option.names) names += (names.empty() ? "" : " ") + name;
  }
  return names;
}

// Within single quotes of a shell.
std::string in_quotes(const std::string& words) {
  std::string out;
  for (const char c : words) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out;
}

std::string bash_values(const VerbFacts& verb) {
  std::string cases;
  for (const OptionFacts& option : verb.options) {
    const std::string values = values_of(option);
    if (option.has_place || option.value.empty()) continue;
    std::string names;
    for (const std::string& name : option.names) names += (names.empty() ? "" : "|") + name;
    if (!values.empty()) {
      cases += text("        ", names, ") COMPREPLY=($(compgen -W '", values,
                    "' -- \"$cur\")); return ;;\n");
    } else if (names_file(option)) {
      cases += text("        ", names, ") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n");
    } else {
      cases += text("        ", names, ") return ;;\n");
    }
  }
  return cases;
}

std::string place_words(const VerbFacts& verb) {
  for (const OptionFacts& option : verb.options) {
    if (option.has_place && !values_of(option).empty()) return values_of(option);
  }
  return {};
}

// One option for _arguments: '(-o --output)'{-o,--output}'[what it does]:value:_files'
std::string zsh_option(const OptionFacts& option) {
  std::string description;
  for (const char c : option.description) {
    if (c == '[' || c == ']' || c == ':') description += '\\';
    description += c;
  }
  std::string out;
  for (const std::string& name : option.names) {
    out +=
        text("        '", option.value.empty() ? "" : "*", name, "[", in_quotes(description), "]");
    if (!option.value.empty()) {
      const std::string values = values_of(option);
      out += text(": :", !values.empty()      ? text("(", values, ")")
                         : names_file(option) ? "_files"
                                              : "( )");
    }
    out += "' \\\n";
  }
  return out;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::string verbs, cases;
  for (const VerbFacts& verb : verbs_of(app)) {
    verbs += verb.name + " ";
    cases +=
        text("    ", verb.name, ")\n      options='", all_names(verb), "'\n      places='",
             place_words(verb), "'\n      case $prev in\n", bash_values(verb), "      esac ;;\n");
  }
  return text("# Completion of moe-permute for bash.\n_moe_permute() {\n",
              "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} options='' "
              "places=''\n",
              "  if ((COMP_CWORD == 1)); then\n    COMPREPLY=($(compgen -W '", verbs,
              "--help --version' -- \"$cur\"))\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n",
              cases, "  esac\n  if [[ $cur == -* ]]; then\n",
              "    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n",
              "  elif [[ -n $places && $COMP_CWORD == 2 ]]; then\n",
              "    COMPREPLY=($(compgen -W \"$places\" -- \"$cur\"))\n",
              "  else\n    COMPREPLY=($(compgen -f -- \"$cur\"))\n  fi\n}\n",
              "complete -o filenames -F _moe_permute moe-permute\n");
}

std::string zsh_completion(const CLI::App& app) {
  std::string verbs, cases;
  for (const VerbFacts& verb : verbs_of(app)) {
    verbs += text("    '", verb.name, ":", in_quotes(verb.summary), "'\n");
    std::string options;
    for (const OptionFacts& option : verb.options) {
      if (!option.has_place) options += zsh_option(option);
    }
    const std::string words = place_words(verb);
    cases += text("    ", verb.name, ")\n      _arguments \\\n", options,
                  words.empty() ? "" : text("        '1:operator:(", words, ")' \\\n"),
                  "        '*:file:_files' ;;\n");
  }
  return text(
      "#compdef moe-permute\n# Completion of moe-permute for zsh.\nlocal -a verbs\nverbs=(\n",
      verbs, "  )\nif ((CURRENT == 2)); then\n  _describe 'verb' verbs\n  return\nfi\n",
      "shift words\n((CURRENT--))\ncase $words[1] in\n", cases, "esac\n");
}

std::string fish_completion(const CLI::App& app) {
  std::string lines = "# Completion of moe-permute for fish.\n";
  for (const VerbFacts& verb : verbs_of(app)) {
    lines += text("complete -c moe-permute -n __fish_use_subcommand -f -a ", verb.name, " -d '",
                  in_quotes(verb.summary), "'\n");
    const std::string seen =
        text("complete -c moe-permute -n '__fish_seen_subcommand_from ", verb.name, "'");
    if (!place_words(verb).empty()) lines += text(seen, " -a '", place_words(verb), "'\n");
    for (const OptionFacts& option : verb.options) {
      if (option.has_place) continue;
      std::string names;
      for (const std::string& name : option.names) {
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      const std::string values = values_of(option);
      lines += text(seen, names,
                    option.value.empty() ? ""
                    : names_file(option) ? " -r"
                                         : " -x",
                    values.empty() ? "" : text(" -a '", values, "'"), " -d '",
                    in_quotes(option.description), "'\n");
    }
  }
  return lines;
}

}  // namespace moe::tools
