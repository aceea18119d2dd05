#include "files/output_files.h"

#include <cstring>
#include <filesystem>
#include <set>

#include "files/file_error.h"
#include "files/npy_writer.h"
#include "files/safetensors_writer.h"

namespace moe::tools {
namespace {

namespace fs = std::filesystem;

// Fewer than the names that pending_names.cc has room for.
constexpr size_t kMostFiles = 1000;

bool is_folder(const std::string& path) {
  std::error_code error;
  return path.ends_with('/') || fs::is_directory(path, error);
}

// A name of a tensor becomes a name of a file only where it cannot lead anywhere else.
std::string npy_path(const std::string& folder, const std::string& name) {
  const bool plain = !name.empty() && name[0] != '.' && name == printable(name) &&
                     name.find('/') == std::string::npos;
  if (!plain) {
    throw FileError(folder, text("the tensor name ", quoted(name),
                                 " makes no file name: write a .safetensors file instead"));
  }
  return (fs::path(folder) / (name + ".npy")).string();
}

}  // namespace

OutputFiles::OutputFiles(const std::string& path, std::span<const StoredTensor> tensors) {
  if (is_folder(path)) {
    make_folder(path, tensors);
  } else if (path.ends_with(".safetensors")) {
    make_safetensors(path, tensors);
  } else if (path.ends_with(".npy") && tensors.size() == 1) {
    make_npy(path, tensors[0]);
  } else if (path.ends_with(".npy")) {
    throw FileError(path, text(tensors.size(),
                               " tensors, but a .npy file holds one: name a folder "
                               "with a / at its end, or a .safetensors file"));
  } else {
    throw FileError(path, "needs to end in .safetensors or .npy, or in / for a folder");
  }
}

void OutputFiles::make_folder(const std::string& path, std::span<const StoredTensor> tensors) {
  if (tensors.size() > kMostFiles) {
    throw FileError(path, text(tensors.size(), " tensors, but a folder takes at most ", kMostFiles,
                               ": write a .safetensors file instead"));
  }
  std::set<std::string> names;
  for (const StoredTensor& tensor : tensors) {
    if (!names.insert(npy_path(path, tensor.name)).second) {
      throw FileError(path, "would hold two tensors " + quoted(tensor.name));
    }
  }
  folder_.emplace(path);
  for (const StoredTensor& tensor : tensors) make_npy(npy_path(path, tensor.name), tensor);
}

void OutputFiles::make_safetensors(const std::string& path, std::span<const StoredTensor> tensors) {
  const SafetensorsLayout layout = lay_out_safetensors(tensors, path);
  files_.push_back(std::make_unique<PendingFile>(path, layout.num_bytes));
  std::byte* start = files_.back()->bytes().data();
  std::memcpy(start, layout.preamble.data(), layout.preamble.size());
  for (size_t begin : layout.begins) places_.push_back(start + begin);
  paths_.push_back(path);
}

void OutputFiles::make_npy(const std::string& path, const StoredTensor& tensor) {
  const std::string preamble = npy_preamble(tensor.dtype, tensor.shape, path);
  const auto num_bytes = static_cast<size_t>(tensor_bytes(tensor.dtype, tensor.shape).value());
  files_.push_back(std::make_unique<PendingFile>(path, preamble.size() + num_bytes));
  std::byte* start = files_.back()->bytes().data();
  std::memcpy(start, preamble.data(), preamble.size());
  places_.push_back(start + preamble.size());
  paths_.push_back(path);
}

void OutputFiles::commit() {
  for (const auto& file : files_) file->commit();
  if (folder_) folder_->keep();
}

}  // namespace moe::tools
