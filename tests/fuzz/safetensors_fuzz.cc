#include <algorithm>
#include <cstdlib>

#include "files/file_error.h"
#include "files/safetensors_reader.h"
#include "files/safetensors_writer.h"
#include "fuzz.h"

namespace {

using moe::tools::StoredTensor;

void require(bool what) {
  if (!what) std::abort();
}

std::string written(std::span<const StoredTensor> tensors) {
  const auto layout = moe::tools::lay_out_safetensors(tensors, "again");
  std::string file = layout.preamble;
  file.resize(layout.num_bytes);
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::transform(tensors[i].bytes.begin(), tensors[i].bytes.end(),
                   file.begin() + static_cast<std::ptrdiff_t>(layout.begins[i]),
                   [](std::byte b) { return static_cast<char>(b); });
  }
  return file;
}

// What was read once is written and read again: the same.
void round_trip(const std::vector<StoredTensor>& tensors) {
  const std::string file = written(tensors);
  const auto again = moe::tools::read_safetensors(
      {reinterpret_cast<const std::byte*>(file.data()), file.size()}, "again");
  require(again.size() == tensors.size());
  for (const StoredTensor& tensor : tensors) {
    const auto found = std::find_if(again.begin(), again.end(), [&](const StoredTensor& other) {
      return other.name == tensor.name;
    });
    require(found != again.end() && found->dtype == tensor.dtype && found->shape == tensor.shape);
    require(std::equal(found->bytes.begin(), found->bytes.end(), tensor.bytes.begin(),
                       tensor.bytes.end()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  try {
    const auto tensors = moe::tools::read_safetensors(file, "fuzz");
    for (const StoredTensor& tensor : tensors) {
      require(tensor.bytes.data() >= file.data());
      require(tensor.bytes.data() + tensor.bytes.size() <= file.data() + file.size());
    }
    round_trip(tensors);
  } catch (const moe::tools::FileError& e) {
    require(std::string(e.what()).find('\n') == std::string::npos);
  }
  return 0;
}

std::vector<std::string> good_inputs() {
  using moe::tools::FileDType;
  static const std::string data(64, '\1');
  const auto bytes = [&](size_t n) {
    return std::span(reinterpret_cast<const std::byte*>(data.data()), n);
  };
  const StoredTensor a{
      .name = "tokens", .dtype = FileDType::kBF16, .shape = {2, 3}, .bytes = bytes(12)};
  const StoredTensor b{
      .name = "indices", .dtype = FileDType::kI32, .shape = {4}, .bytes = bytes(16)};
  const StoredTensor c{.name = "x", .dtype = FileDType::kF4, .shape = {2}, .bytes = bytes(1)};
  const StoredTensor d{.name = "", .dtype = FileDType::kF64, .shape = {0, 5}, .bytes = {}};
  std::vector<std::string> inputs;
  for (const std::vector<StoredTensor>& tensors : {std::vector{a, b, c, d}, {a}, {}})
    inputs.push_back(written(tensors));
  std::string json =
      R"({"__metadata__":{"format":"pt"},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  inputs.push_back(static_cast<char>(json.size()) + std::string(7, '\0') + json + "\1");
  return inputs;
}

void repair(std::string& input) {
  input.resize(std::max<size_t>(input.size(), 8));
  const size_t end = std::max<size_t>(input.rfind('}') + 1, 8);
  for (size_t i = 0; i < 8; ++i) input[i] = static_cast<char>((end - 8) >> (8 * i) & 0xFF);
}
