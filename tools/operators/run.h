// A planned operator, run over memory or into files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "files/output_files.h"
#include "operators/operator.h"

namespace moe::tools {

// The outputs as tensors to be stored.
std::vector<StoredTensor> stored_outputs(const Planned& planned);

// Runs into the given memory, in the order of the outputs, and returns the seconds it took.
double run_into(const Planned& planned, const std::vector<std::byte*>& places);

// The outputs in memory of their own.
class Results {
 public:
  explicit Results(const Planned& planned);
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const StoredTensor* find(const std::string& name) const;
  double seconds() const { return seconds_; }

 private:
  std::vector<std::unique_ptr<std::byte[]>> memory_;  // not a vector: nobody needs the zeros
  std::vector<StoredTensor> tensors_;
  double seconds_;
};

}  // namespace moe::tools
