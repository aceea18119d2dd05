// One verb of the program.
#pragma once

#include <string>

#include "cli/errors.h"
#include "cli/output.h"

namespace CLI {
class App;
}

namespace moe::tools {

class Verb {
 public:
  virtual ~Verb() = default;

  virtual const char* name() const = 0;
  virtual std::string summary() const = 0;  // one line, for the list of verbs
  virtual void add_options(CLI::App& app) = 0;
  // Returns an exit code; throws what main() turns into one.
  virtual int run(Output& output) = 0;
};

}  // namespace moe::tools
