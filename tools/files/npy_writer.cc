#include "files/npy_writer.h"

#include "files/file_error.h"

namespace moe::tools {
namespace {

// As Python writes it: "(3,)".
std::string tuple_text(std::span<const int64_t> shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + (shape.size() == 1 ? ",)" : ")");
}

// The bytes of `size`, lowest first.
std::string little_endian(size_t size, size_t num_bytes) {
  std::string out;
  for (size_t i = 0; i < num_bytes; ++i) out += static_cast<char>(size >> (8 * i) & 0xFF);
  return out;
}

}  // namespace

std::string npy_preamble(FileDType dtype, std::span<const int64_t> shape, const std::string& path) {
  const DTypeFacts& d = facts(dtype);
  if (!d.npy) {
    throw FileError(path, text(".npy has no ", d.name, ": write a .safetensors file instead"));
  }
  std::string header =
      text("{'descr': '", d.npy, "', 'fortran_order': False, 'shape': ", tuple_text(shape), ", }");
  // Room for the first size to grow to 21 digits, as NumPy leaves it; data starts at 64 bytes.
  if (!shape.empty()) header.append(21 - std::to_string(shape[0]).size(), ' ');
  const bool short_header = header.size() + 1 + 64 < 65536;
  const size_t before = 8 + (short_header ? 2 : 4);
  header.append(64 - (before + header.size() + 1) % 64, ' ');
  header += '\n';
  return text("\x93NUMPY", short_header ? '\x01' : '\x02', '\0',
              little_endian(header.size(), short_header ? 2 : 4), header);
}

}  // namespace moe::tools
