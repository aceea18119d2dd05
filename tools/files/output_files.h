// Tensors written to files: one .safetensors file, one .npy file, or a folder of .npy files.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "files/pending_file.h"
#include "files/pending_folder.h"
#include "files/stored_tensor.h"

namespace moe::tools {

class OutputFiles {
 public:
  // Makes the files, with room for the tensors (whose `bytes` are not looked at). `path` ends in
  // .safetensors, or in .npy for a single tensor, or is a folder that exists or ends in "/", which
  // is made. Throws FileError.
  OutputFiles(const std::string& path, std::span<const StoredTensor> tensors);

  // Where tensor i goes: row-major.
  std::byte* data(size_t i) const { return places_[i]; }
  // The names that will appear.
  const std::vector<std::string>& paths() const { return paths_; }
  // Gives the complete files their names.
  void commit();

 private:
  void make_folder(const std::string& path, std::span<const StoredTensor> tensors);
  void make_safetensors(const std::string& path, std::span<const StoredTensor> tensors);
  void make_npy(const std::string& path, const StoredTensor& tensor);

  std::optional<PendingFolder> folder_;  // outlives its files
  std::vector<std::unique_ptr<PendingFile>> files_;
  std::vector<std::byte*> places_;
  std::vector<std::string> paths_;
};

}  // namespace moe::tools
