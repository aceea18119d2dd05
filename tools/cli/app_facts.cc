#include "cli/app_facts.h"

#include <CLI/CLI.hpp>

namespace moe::tools {
namespace {

OptionFacts facts_of(const CLI::Option& option) {
  OptionFacts facts;
  for (const std::string& name : option.get_snames()) facts.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) facts.names.push_back("--" + name);
  facts.has_place = option.get_positional();
  if (facts.names.empty()) facts.names.push_back(option.get_name());
  const bool flag = option.get_items_expected_max() == 0;
  facts.value = flag ? "" : option.get_type_name();
  facts.description = option.get_description();
  facts.fallback = option.get_default_str();
  facts.required = option.get_required();
  facts.many = !flag && option.get_items_expected_max() > 1;
  return facts;
}

}  // namespace

std::vector<OptionFacts> options_of(const CLI::App& app) {
  std::vector<OptionFacts> options;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) options.push_back(facts_of(*option));
  }
  return options;
}

VerbFacts verb_of(const CLI::App& verb) {
  return {verb.get_name(), verb.get_description(), verb.get_footer(), options_of(verb)};
}

std::vector<VerbFacts> verbs_of(const CLI::App& app) {
  std::vector<VerbFacts> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    verbs.push_back(verb_of(*verb));
  }
  return verbs;
}

}  // namespace moe::tools
