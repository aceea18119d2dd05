// Options of every verb that plans an operator.
#pragma once

#include "cli/engine_options.h"
#include "cli/inputs.h"
#include "cli/window_options.h"
#include "operators/operator.h"

namespace CLI {
class App;
}

namespace moe::tools {

class OperatorSettings {
 public:
  void add(CLI::App& app);
  // With the window that the files give.
  Settings resolve(const Inputs& inputs, const Operator& op) const;
  const WindowOptions& window() const { return window_; }

 private:
  WindowOptions window_;
  std::optional<int64_t> top_k_, rows_;
  bool wide_indices_ = false, check_indices_ = false;
  Engine engine_;
};

}  // namespace moe::tools
