// Options that say how an operator runs.
#pragma once

#include "moe/engine.h"

namespace CLI {
class App;
}

namespace moe::tools {

void add_engine_options(CLI::App& app, Engine& engine);

}  // namespace moe::tools
