#include "files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "files/file_descriptor.h"
#include "files/file_error.h"

namespace moe::tools {
namespace {

// Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
FileDescriptor open_to_read(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) throw FileError(path, text("cannot be read: ", std::strerror(errno)));
  return file;
}

size_t size_of_regular(const FileDescriptor& file, const std::string& path) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) throw FileError(path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw FileError(path, "is a folder, but needs a file in it");
  if (!S_ISREG(status.st_mode)) {
    throw FileError(path, "is no regular file, but needs one: it is mapped, not read as a stream");
  }
  return static_cast<size_t>(status.st_size);
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const FileDescriptor file = open_to_read(path);
  size_ = size_of_regular(file, path);
  if (size_ == 0) return;
  void* mapped = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED) throw FileError(path, text("cannot be mapped: ", std::strerror(errno)));
  data_ = static_cast<const std::byte*>(mapped);
}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace moe::tools
