// The program around its verbs: arguments, messages, exit codes.
#pragma once

namespace moe::tools {

// Returns the exit code (cli/errors.h). Never throws.
int run_program(int argc, char** argv);

}  // namespace moe::tools
