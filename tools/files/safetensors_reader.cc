#include "files/safetensors_reader.h"

#include <algorithm>

#include "files/file_error.h"
#include "files/safetensors_header.h"

namespace moe::tools {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kLongestHeader = 100'000'000;  // the format's own limit

uint64_t header_size(std::span<const std::byte> file, const std::string& path) {
  if (file.size() < kLengthBytes) {
    throw FileError(path, text(file.size(), " bytes, but a .safetensors file has at least 8"));
  }
  uint64_t size = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) size |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  if (size > kLongestHeader) {
    throw FileError(path, text("its header would have ", size, " bytes, but the format allows ",
                               kLongestHeader, ": is it a .safetensors file?"));
  }
  if (size > file.size() - kLengthBytes) {
    throw FileError(path, text("its header should have ", size, " bytes, but the file ends after ",
                               file.size() - kLengthBytes, ": is it cut off?"));
  }
  return size;
}

void check_size(const SafetensorsEntry& entry, const std::string& path) {
  const auto needed = tensor_bytes(entry.dtype, entry.shape);
  if (needed == entry.end - entry.begin) return;
  throw FileError(path,
                  text(quoted(entry.name), " has ", entry.end - entry.begin, " bytes, but ",
                       facts(entry.dtype).name, " of shape ", shape_text(entry.shape), " needs ",
                       needed ? std::to_string(*needed) : "no whole number below 2^63"));
}

// One after another, from the first byte to the last.
void check_places(const std::vector<SafetensorsEntry>& entries, int64_t num_bytes,
                  const std::string& path) {
  int64_t expected = 0;
  for (const SafetensorsEntry& entry : entries) {
    const std::string range =
        text(quoted(entry.name), " lies at [", entry.begin, ", ", entry.end, ")");
    if (entry.begin > entry.end) throw FileError(path, range + ", which ends before it begins");
    if (entry.end > num_bytes) {
      throw FileError(path, text(range, ", but only ", num_bytes, " bytes follow the header: is ",
                                 "the file cut off?"));
    }
    if (entry.begin != expected) {
      throw FileError(path, text(range,
                                 entry.begin < expected ? ", which overlaps the one before"
                                                        : ", which leaves a hole before it",
                                 " (that ends at ", expected, ")"));
    }
    check_size(entry, path);
    expected = entry.end;
  }
  if (expected != num_bytes) {
    throw FileError(path, text(num_bytes - expected, " bytes follow the last tensor"));
  }
}

}  // namespace

std::vector<StoredTensor> read_safetensors(std::span<const std::byte> file,
                                           const std::string& path) {
  const uint64_t size = header_size(file, path);
  const std::string_view json(reinterpret_cast<const char*>(file.data()) + kLengthBytes, size);
  std::vector<SafetensorsEntry> entries = parse_safetensors_header(json, path);
  const auto data = file.subspan(kLengthBytes + size);
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  check_places(entries, static_cast<int64_t>(data.size()), path);
  std::vector<StoredTensor> tensors;
  tensors.reserve(entries.size());
  for (SafetensorsEntry& entry : entries) {
    tensors.push_back({.name = std::move(entry.name),
                       .dtype = entry.dtype,
                       .shape = std::move(entry.shape),
                       .bytes = data.subspan(static_cast<size_t>(entry.begin),
                                             static_cast<size_t>(entry.end - entry.begin))});
  }
  return tensors;
}

}  // namespace moe::tools
