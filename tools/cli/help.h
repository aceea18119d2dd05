// What --help prints, the same with every version of the parser.
#pragma once

#include <string>

#include "cli/app_facts.h"

namespace moe::tools {

std::string help_of_program(const CLI::App& app);
std::string help_of_verb(const VerbFacts& verb);

// "moe-permute verify OPERATOR [NAME=]FILE... --against [NAME=]FILE [options]"
std::string synopsis(const VerbFacts& verb);

// Makes these the answer to --help.
void use_own_help(CLI::App& app);

}  // namespace moe::tools
