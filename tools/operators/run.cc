#include "operators/run.h"

#include <chrono>

#include "files/dtypes.h"

namespace moe::tools {
namespace {

size_t bytes_of(const StoredTensor& tensor) {
  return static_cast<size_t>(tensor_bytes(tensor.dtype, tensor.shape).value());
}

}  // namespace

std::vector<StoredTensor> stored_outputs(const Planned& planned) {
  std::vector<StoredTensor> tensors;
  for (const OutputSpec& output : planned.outputs) {
    const auto* shape = output.desc.shape.data();
    tensors.push_back({.name = output.name,
                       .dtype = file_dtype(output.desc.dtype),
                       .shape = {shape, shape + output.desc.num_dims},
                       .bytes = {}});
  }
  return tensors;
}

double run_into(const Planned& planned, const std::vector<std::byte*>& places) {
  const BoundCall call = planned.bind(places);
  const std::unique_ptr<std::byte[]> workspace(new std::byte[call.workspace_bytes()]);
  const auto start = std::chrono::steady_clock::now();
  call.run(workspace.get());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Results::Results(const Planned& planned) : tensors_(stored_outputs(planned)) {
  std::vector<std::byte*> places;
  for (StoredTensor& tensor : tensors_) {
    const size_t num_bytes = bytes_of(tensor);
    memory_.emplace_back(new std::byte[num_bytes]);
    places.push_back(memory_.back().get());
    tensor.bytes = {places.back(), num_bytes};
  }
  seconds_ = run_into(planned, places);
}

const StoredTensor* Results::find(const std::string& name) const {
  for (const StoredTensor& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

}  // namespace moe::tools
