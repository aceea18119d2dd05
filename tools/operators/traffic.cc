#include "operators/traffic.h"

#include <algorithm>
#include <cstring>

namespace moe::tools {
namespace {

int64_t elements(const TensorDesc& desc) {
  int64_t count = 1;
  for (int i = 0; i < desc.num_dims; ++i) count *= desc.shape[static_cast<size_t>(i)];
  return count;
}

// Rows of [rows, ...] are read where the window has them, tokens at most once and at most one for
// each such row, everything else whole.
int64_t bytes_read(const char* name, const TensorDesc& desc, const Sizes& sizes) {
  const int64_t whole = elements(desc) * dtype_bytes(desc.dtype);
  const int64_t rows = desc.num_dims > 0 ? desc.shape[0] : 1;
  const int64_t window = sizes.window.end - sizes.window.begin;
  const bool permuted = std::strncmp(name, "permuted_", 9) == 0;
  const bool tokens =
      std::strcmp(name, "tokens") == 0 || std::strcmp(name, "unpermuted_tokens_grad") == 0;
  if (rows == 0 || !(permuted || tokens)) return whole;
  return whole / rows * std::min(rows, window);
}

}  // namespace

Traffic traffic_of(const Operator& op, const Operands& operands, const Planned& planned) {
  Traffic traffic;
  for (const Input& input : op.inputs) {
    const auto desc = desc_of(operands, input.name);
    if (desc) traffic.bytes_read += bytes_read(input.name, *desc, planned.sizes);
  }
  for (const OutputSpec& output : planned.outputs) {
    traffic.bytes_written += elements(output.desc) * dtype_bytes(output.desc.dtype);
  }
  return traffic;
}

}  // namespace moe::tools
