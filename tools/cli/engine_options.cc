#include "cli/engine_options.h"

#include <CLI/CLI.hpp>

#include "cli/ranges.h"

namespace moe::tools {

void add_engine_options(CLI::App& app, Engine& engine) {
  app.add_option("--threads", engine.num_threads, "Most threads to use; 0: all processors")
      ->check(between(0, 4096))
      ->type_name("N");
  app.add_option("--kernel", engine.kernel,
                 "Force a kernel by its name (moe-permute doctor lists them)")
      ->type_name("NAME");
}

}  // namespace moe::tools
