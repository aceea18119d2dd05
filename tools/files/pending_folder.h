// A folder for results that stays only where they do.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace moe::tools {

// Makes the folder, and those above it that are missing. Unless it is kept, its end and the signals
// of pending_file.h remove again what was made here and is empty.
class PendingFolder {
 public:
  // Throws FileError where the folder cannot be made.
  explicit PendingFolder(const std::string& path);
  ~PendingFolder();
  PendingFolder(const PendingFolder&) = delete;
  PendingFolder& operator=(const PendingFolder&) = delete;

  void keep() noexcept;

 private:
  void make(const std::string& path);
  void discard() noexcept;

  struct Made {
    std::string path;
    size_t slot;  // where its name is registered
  };
  std::vector<Made> made_;  // outer ones first
};

}  // namespace moe::tools
