// What a CLI11 app knows of itself, as plain values.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace moe::tools {

struct OptionFacts {
  std::vector<std::string> names;  // "-o", "--output"; one without dashes for what has a place
  std::string value;               // "OUT"; empty for a flag
  std::string description;
  std::string fallback;  // what holds without it
  bool has_place = false, required = false, many = false;
};

struct VerbFacts {
  std::string name, summary, footer;
  std::vector<OptionFacts> options;
};

std::vector<OptionFacts> options_of(const CLI::App& app);
VerbFacts verb_of(const CLI::App& verb);
std::vector<VerbFacts> verbs_of(const CLI::App& app);

}  // namespace moe::tools
