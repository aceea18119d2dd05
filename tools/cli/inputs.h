// The tensors of all files that a command line names, by name.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "files/mapped_file.h"
#include "files/stored_tensor.h"

namespace moe::tools {

class Inputs {
 public:
  // Each argument is [NAME=]PATH or [NAME=]PATH.safetensors:TENSOR. A .safetensors file gives all
  // its tensors (or one) by their names, a .npy file one by the file's name, a folder all its .npy
  // files; NAME renames the one. Each of `as` is NAME=DTYPE: the tensor's bytes are read as that
  // type of the same width. Throws FileError and UsageError.
  Inputs(const std::vector<std::string>& arguments, const std::vector<std::string>& as);

  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  // Null where no file has it.
  const StoredTensor* find(const std::string& name) const;
  // "a, b and c": what there is, for messages.
  std::string names() const;

 private:
  void open(const std::string& argument);
  void open_safetensors(const std::string& path, const std::string& wanted,
                        const std::string& rename);
  void open_npy(const std::string& path, const std::string& rename);
  void open_folder(const std::string& path);
  void add(const std::string& name, StoredTensor tensor, const std::string& path);
  void reinterpret(const std::string& as);
  std::span<const std::byte> map(const std::string& path);

  std::vector<std::unique_ptr<MappedFile>> files_;
  std::map<std::string, StoredTensor> tensors_;
};

}  // namespace moe::tools
