#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "files/file_error.h"
#include "files/npy_reader.h"
#include "files/npy_writer.h"
#include "fuzz.h"

namespace {

using moe::tools::FileDType;

void require(bool what) {
  if (!what) std::abort();
}

std::span<const std::byte> bytes_of(const std::string& file) {
  return {reinterpret_cast<const std::byte*>(file.data()), file.size()};
}

// What was read once is written and read again: the same.
void round_trip(const moe::tools::StoredTensor& tensor) {
  if (!moe::tools::facts(tensor.dtype).npy) return;
  const std::string file =
      moe::tools::npy_preamble(tensor.dtype, tensor.shape, "again") +
      std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  const auto again = moe::tools::read_npy(bytes_of(file), "again");
  require(again.dtype == tensor.dtype && again.shape == tensor.shape);
  require(
      std::equal(again.bytes.begin(), again.bytes.end(), tensor.bytes.begin(), tensor.bytes.end()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  try {
    const auto tensor = moe::tools::read_npy(file, "fuzz");
    require(tensor.bytes.data() + tensor.bytes.size() == file.data() + file.size());
    require(tensor.bytes.size() <= size);
    round_trip(tensor);
  } catch (const moe::tools::FileError& e) {
    require(std::string(e.what()).find('\n') == std::string::npos);
  }
  return 0;
}

std::vector<std::string> good_inputs() {
  std::vector<std::string> inputs;
  for (const auto& [dtype, shape, num_bytes] :
       {std::tuple(FileDType::kF32, std::vector<int64_t>{2, 3}, 24),
        {FileDType::kI64, {4}, 32},
        {FileDType::kBool, {}, 1},
        {FileDType::kV2, {0, 7}, 0}}) {
    inputs.push_back(moe::tools::npy_preamble(dtype, shape, "seed") +
                     std::string(static_cast<size_t>(num_bytes), '\1'));
  }
  return inputs;
}

void repair(std::string& input) {
  input.resize(std::max<size_t>(input.size(), 10));
  input.replace(0, 8, std::string("\x93NUMPY\x01\0", 8));
  const size_t end = input.find('\n', 10);
  const size_t length = (end == std::string::npos ? input.size() - 1 : end) + 1 - 10;
  input[8] = static_cast<char>(length & 0xFF);
  input[9] = static_cast<char>(length >> 8 & 0xFF);
}
