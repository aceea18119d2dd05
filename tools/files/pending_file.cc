#include "files/pending_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "files/file_error.h"
#include "files/pending_names.h"

namespace moe::tools {
namespace {

namespace fs = std::filesystem;

// Through links, so that a link stays one and its target changes.
std::string real_target(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) throw FileError(path, "is a folder, but needs a file's name");
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw FileError(path, "is no regular file, but results are written to one");
  }
  if (!fs::is_symlink(fs::symlink_status(path, error))) return path;
  const fs::path resolved = fs::weakly_canonical(path, error);
  return error ? path : resolved.string();
}

// Short enough for every file system, whatever the target's own name; names that are cut may be
// equal.
std::string temporary_name(const std::string& target) {
  static std::atomic<unsigned> count{0};
  const fs::path path(target);
  const std::string name = path.filename().string().substr(0, 100);
  return (path.parent_path() / text(".", name, ".", getpid(), ".", count++, ".tmp")).string();
}

}  // namespace

PendingFile::PendingFile(const std::string& path, size_t size)
    : path_(real_target(path)),
      temporary_(temporary_name(path_)),
      size_(size),
      slot_(register_pending(temporary_)) {
  try {
    open_temporary();
    reserve();
    map();
  } catch (...) {
    discard();
    throw;
  }
}

PendingFile::~PendingFile() { discard(); }

void PendingFile::fail(const char* what, int error) const {
  throw FileError(path_, text(what, ": ", std::strerror(error)));
}

void PendingFile::open_temporary() {
  unlink(temporary_.c_str());  // of an earlier process of the same number, if any
  file_ = FileDescriptor(open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file_) fail("cannot be written", errno);
}

void PendingFile::reserve() {
  if (size_ == 0) return;
  int error = 0;
  do {
    error = posix_fallocate(file_.get(), 0, static_cast<off_t>(size_));
  } while (error == EINTR);
  if (error != 0) {
    fail(text("there is no room for ", bytes_text(static_cast<double>(size_))).c_str(), error);
  }
}

void PendingFile::map() {
  if (size_ == 0) return;
  void* mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED) fail("cannot be mapped", errno);
  data_ = static_cast<std::byte*>(mapped);
}

void PendingFile::unmap() {
  if (data_) munmap(data_, size_);
  data_ = nullptr;
}

void PendingFile::commit() {
  if (fsync(file_.get()) != 0) fail("cannot be written", errno);
  unmap();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be written", errno);
  temporary_.clear();
}

void PendingFile::discard() noexcept {
  unmap();
  if (file_ && !temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
  release_pending(slot_);
}

void write_file(const std::string& path, const std::string& content) {
  PendingFile file(path, content.size());
  std::memcpy(file.bytes().data(), content.data(), content.size());
  file.commit();
}

}  // namespace moe::tools
