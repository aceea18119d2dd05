#include "files/npy_reader.h"

#include <cstring>

#include "files/file_error.h"
#include "files/npy_header.h"

namespace moe::tools {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// NumPy's own are 128 bytes or little more.
constexpr size_t kLongestHeader = 1 << 16;

std::string_view chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Where the header's text begins and how long it is: two bytes of length in version 1, four later.
struct HeaderPlace {
  size_t begin, size;
};

HeaderPlace header_place(std::span<const std::byte> file, const std::string& path) {
  if (file.size() < 8) throw FileError(path, "ends within its .npy header");
  const int version = std::to_integer<int>(file[6]), minor = std::to_integer<int>(file[7]);
  if (version < 1 || version > 3 || minor != 0) {
    throw FileError(path,
                    text(".npy version ", version, ".", minor, ", but needs 1.0, 2.0 or 3.0"));
  }
  const size_t num_length_bytes = version == 1 ? 2 : 4, begin = 8 + num_length_bytes;
  if (file.size() < begin) throw FileError(path, "ends within its .npy header");
  size_t size = 0;
  for (size_t i = 0; i < num_length_bytes; ++i) {
    size |= std::to_integer<size_t>(file[8 + i]) << (8 * i);
  }
  if (size > kLongestHeader) {
    throw FileError(path, text("its .npy header would have ", size, " bytes, but at most ",
                               kLongestHeader, " are taken"));
  }
  if (file.size() - begin < size) throw FileError(path, "ends within its .npy header");
  return {begin, size};
}

FileDType dtype_of(const std::string& descr, const std::string& path) {
  if (const DTypeFacts* known = find_npy_dtype(descr)) return known->dtype;
  const std::string got = "its elements are " + quoted(descr);
  if (descr.starts_with('>')) {
    throw FileError(path, got +
                              ", big-endian, but needs little-endian: in NumPy, save "
                              "a.astype(a.dtype.newbyteorder('<'))");
  }
  if (descr.find('O') != std::string::npos) {
    throw FileError(path, got + ", Python objects, but needs numbers");
  }
  throw FileError(path, got + ", but needs booleans, integers, floats or complex64");
}

}  // namespace

StoredTensor read_npy(std::span<const std::byte> file, const std::string& path) {
  if (!chars(file).starts_with(kMagic)) {
    throw FileError(path, "does not begin as a .npy file does");
  }
  const HeaderPlace place = header_place(file, path);
  NpyHeader header = parse_npy_header(chars(file.subspan(place.begin, place.size)), path);
  StoredTensor tensor{.name = {},
                      .dtype = dtype_of(header.descr, path),
                      .shape = std::move(header.shape),
                      .fortran_order = header.fortran_order,
                      .bytes = file.subspan(place.begin + place.size)};
  const auto needed = tensor_bytes(tensor.dtype, tensor.shape);
  const auto got = static_cast<int64_t>(tensor.bytes.size());
  if (needed == got) return tensor;
  throw FileError(path, text(got, " bytes of data, but ", facts(tensor.dtype).name, " of shape ",
                             shape_text(tensor.shape), " needs ",
                             needed ? std::to_string(*needed) : "more than 2^63"));
}

}  // namespace moe::tools
