// A file's bytes, mapped: what is not looked at is not read.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace moe::tools {

class MappedFile {
 public:
  // Throws FileError where the path is no readable regular file.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace moe::tools
