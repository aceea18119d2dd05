// Options of every verb that reads tensors.
#pragma once

#include <string>
#include <vector>

#include "cli/inputs.h"
#include "operators/operator.h"

namespace CLI {
class App;
}

namespace moe::tools {

class InputOptions {
 public:
  void add(CLI::App& app, bool required = true);
  bool given() const { return !files_.empty(); }
  Inputs open() const { return {files_, as_}; }

 private:
  std::vector<std::string> files_, as_;
};

// A stored tensor as the operators read it; in whichever order of elements. Throws UsageError for a
// type that no operator has.
Operand operand_of(const StoredTensor& tensor);

// What the operator reads, and besides whatever else top_k or a window may come from. Throws
// UsageError where a tensor is missing.
Operands operands_for(const Operator& op, const Inputs& inputs);

}  // namespace moe::tools
