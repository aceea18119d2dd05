// An output that appears under its name when it is complete, or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "files/file_descriptor.h"

namespace moe::tools {

// A file of a fixed size under a temporary name in the folder of `path`, mapped for writing. Its
// space is taken at once, so that a full disk shows here and not while writing.
class PendingFile {
 public:
  // Throws FileError where the file cannot be made.
  PendingFile(const std::string& path, size_t size);
  // Removes the temporary file unless it was committed.
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  std::span<std::byte> bytes() const { return {data_, size_}; }
  // Waits until the disk has it, and gives it its name. Throws FileError.
  void commit();

 private:
  void open_temporary();
  void reserve();
  void map();
  void unmap();
  void discard() noexcept;
  [[noreturn]] void fail(const char* what, int error) const;

  std::string path_, temporary_;
  size_t size_;
  size_t slot_;  // where the temporary name is registered
  FileDescriptor file_;
  std::byte* data_ = nullptr;
};

// Writes a whole file so. Throws FileError.
void write_file(const std::string& path, const std::string& content);

// From now on SIGINT, SIGTERM and SIGHUP remove every pending file before they end the program, and
// so does SIGBUS, which a mapped file raises that somebody else has cut short. A write past a size
// limit of the process becomes an error instead of a signal.
void remove_pending_files_on_signals();

}  // namespace moe::tools
