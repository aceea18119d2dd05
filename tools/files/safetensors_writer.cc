#include "files/safetensors_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "files/file_error.h"

namespace moe::tools {
namespace {

constexpr size_t kAlignment = 64;

std::vector<size_t> widest_first(std::span<const StoredTensor> tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return facts(tensors[a].dtype).bits > facts(tensors[b].dtype).bits;
  });
  return order;
}

std::string with_length(std::string json) {
  json.append((kAlignment - (8 + json.size()) % kAlignment) % kAlignment, ' ');
  std::string preamble;
  for (size_t i = 0; i < 8; ++i) preamble += static_cast<char>(json.size() >> (8 * i) & 0xFF);
  return preamble + json;
}

bool is_utf8(const std::string& name) {
  try {
    return !nlohmann::json(name).dump().empty();
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

void check(const StoredTensor& tensor, const nlohmann::ordered_json& header,
           const std::string& path) {
  const std::string name = quoted(tensor.name);
  if (!facts(tensor.dtype).safetensors) {
    throw FileError(path, text(name, " has ", facts(tensor.dtype).name,
                               ", which .safetensors lacks: say which type it is with --as"));
  }
  if (tensor.name == "__metadata__") {
    throw FileError(path, "the name " + name + " is the format's own, and no tensor's");
  }
  if (!is_utf8(tensor.name)) throw FileError(path, "the name " + name + " is no UTF-8");
  if (header.contains(tensor.name)) throw FileError(path, "would hold two tensors " + name);
}

}  // namespace

SafetensorsLayout lay_out_safetensors(std::span<const StoredTensor> tensors,
                                      const std::string& path) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  SafetensorsLayout layout{
      .preamble = {}, .begins = std::vector<size_t>(tensors.size()), .num_bytes = 0};
  for (size_t i : widest_first(tensors)) {
    const StoredTensor& tensor = tensors[i];
    check(tensor, header, path);
    const auto num_bytes = static_cast<size_t>(tensor_bytes(tensor.dtype, tensor.shape).value());
    layout.begins[i] = layout.num_bytes;
    layout.num_bytes += num_bytes;
    header[tensor.name] = {{"dtype", facts(tensor.dtype).safetensors},
                           {"shape", tensor.shape},
                           {"data_offsets", {layout.begins[i], layout.num_bytes}}};
  }
  layout.preamble = with_length(header.dump());
  for (size_t& begin : layout.begins) begin += layout.preamble.size();
  layout.num_bytes += layout.preamble.size();
  return layout;
}

}  // namespace moe::tools
