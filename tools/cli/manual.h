// The manual page and the completions of shells, from the options themselves, so that none of them
// can say something else than --help.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace moe::tools {

std::string man_page(const CLI::App& app);
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
std::string fish_completion(const CLI::App& app);

// Writes the four into a folder, under the names that the shells look for.
void write_manual(const CLI::App& app, const std::string& folder);

}  // namespace moe::tools
