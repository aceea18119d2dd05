// Options that say how an operator runs.
#pragma once

#include <CLI/CLI.hpp>

#include "moe/engine.h"

namespace moe::tools {

inline void add_engine_options(CLI::App& app, Engine& engine) {
  app.add_option("--threads", engine.num_threads, "Most threads to use; 0: all processors")
      ->check(CLI::Range(0, 4096))
      ->type_name("N");
  app.add_option("--kernel", engine.kernel,
                 "Force a kernel by its name (moe-permute doctor lists them)")
      ->type_name("NAME");
}

}  // namespace moe::tools
