#include "cli/inputs.h"

#include <algorithm>
#include <filesystem>

#include "cli/errors.h"
#include "files/file_error.h"
#include "files/npy_reader.h"
#include "files/safetensors_reader.h"

namespace moe::tools {
namespace {

namespace fs = std::filesystem;

// A command line's "[NAME=]PATH[:TENSOR]".
struct Argument {
  std::string rename, path, tensor;
};

Argument split(const std::string& argument) {
  Argument parts{.rename = {}, .path = argument, .tensor = {}};
  std::error_code error;
  if (fs::exists(argument, error)) return parts;  // whatever characters its name has
  static const std::string kEnd = ".safetensors:";
  // One behind these belongs to a path or to a tensor's name.
  const size_t equals = argument.find('='),
               last = std::min(argument.find('/'), argument.find(kEnd));
  if (equals != std::string::npos && equals < last) {
    parts.rename = argument.substr(0, equals);
    parts.path = argument.substr(equals + 1);
  }
  const size_t colon = parts.path.find(kEnd);
  if (colon != std::string::npos) {
    parts.tensor = parts.path.substr(colon + kEnd.size());
    parts.path.resize(colon + kEnd.size() - 1);
  }
  return parts;
}

bool is_npy(std::span<const std::byte> file) { return !file.empty() && file[0] == std::byte{0x93}; }

// The one that `rename` means.
std::string only_name(const std::vector<StoredTensor>& tensors, const std::string& rename,
                      const std::string& path) {
  if (tensors.size() == 1) return tensors[0].name;
  throw UsageError(text(rename, "=", path, ": the file has ", tensors.size(),
                        " tensors; say which: ", rename, "=", path, ":TENSOR"));
}

}  // namespace

Inputs::Inputs(const std::vector<std::string>& arguments, const std::vector<std::string>& as) {
  for (const std::string& argument : arguments) open(argument);
  for (const std::string& each : as) reinterpret(each);
}

std::span<const std::byte> Inputs::map(const std::string& path) {
  files_.push_back(std::make_unique<MappedFile>(path));
  return files_.back()->bytes();
}

void Inputs::open(const std::string& argument) {
  const Argument parts = split(argument);
  std::error_code error;
  if (fs::is_directory(parts.path, error)) {
    if (!parts.rename.empty()) {
      throw UsageError(argument + ": a folder holds several tensors, which one name cannot take");
    }
    return open_folder(parts.path);
  }
  if (parts.path.ends_with(".safetensors")) {
    open_safetensors(parts.path, parts.tensor, parts.rename);
  } else {
    open_npy(parts.path, parts.rename);
  }
}

void Inputs::open_safetensors(const std::string& path, const std::string& wanted,
                              const std::string& rename) {
  std::vector<StoredTensor> tensors = read_safetensors(map(path), path);
  const std::string one =
      wanted.empty() && !rename.empty() ? only_name(tensors, rename, path) : wanted;
  bool found = false;
  for (StoredTensor& tensor : tensors) {
    if (!one.empty() && tensor.name != one) continue;
    const std::string name = rename.empty() ? tensor.name : rename;
    add(name, std::move(tensor), path);
    found = true;
  }
  if (!found && !one.empty()) throw UsageError(text(path, ": no tensor ", quoted(one)));
}

void Inputs::open_npy(const std::string& path, const std::string& rename) {
  const auto bytes = map(path);
  if (!path.ends_with(".npy") && !is_npy(bytes)) {
    throw FileError(path, "is neither .safetensors nor .npy");
  }
  add(rename.empty() ? fs::path(path).stem().string() : rename, read_npy(bytes, path), path);
}

void Inputs::open_folder(const std::string& path) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(".npy") && name[0] != '.') found.push_back(entry->path().string());
  }
  if (error) throw FileError(path, "cannot be read: " + error.message());
  if (found.empty()) throw UsageError(path + ": a folder without .npy files");
  std::sort(found.begin(), found.end());
  for (const std::string& file : found) open_npy(file, "");
}

void Inputs::add(const std::string& name, StoredTensor tensor, const std::string& path) {
  tensor.name = name;
  if (!tensors_.emplace(name, std::move(tensor)).second) {
    throw UsageError(text(printable(name), ": given twice, the second time by ", printable(path),
                          "; rename one: NAME=", printable(path)));
  }
}

void Inputs::reinterpret(const std::string& as) {
  const size_t equals = as.find('=');
  const std::string name = as.substr(0, equals);
  const auto found = tensors_.find(name);
  if (equals == std::string::npos || found == tensors_.end()) {
    throw UsageError("--as " + as + ": needs NAME=DTYPE with one of " + names());
  }
  const DTypeFacts* wanted = find_dtype(as.substr(equals + 1));
  if (!wanted) throw UsageError("--as " + as + ": no such type; for instance bfloat16");
  const DTypeFacts& got = facts(found->second.dtype);
  if (wanted->bits != got.bits) {
    throw UsageError(text("--as ", as, ": its elements have ", got.bits, " bits, but ",
                          wanted->name, " has ", wanted->bits));
  }
  found->second.dtype = wanted->dtype;
}

const StoredTensor* Inputs::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

std::string Inputs::names() const {
  std::string out;
  size_t shown = 0;
  for (const auto& [name, tensor] : tensors_) {
    if (shown++ == 12) return out + ", ...";
    out += (out.empty() ? "" : ", ") + printable(name);
  }
  return out.empty() ? "nothing" : out;
}

}  // namespace moe::tools
