#include "files/pending_folder.h"

#include <unistd.h>

#include <filesystem>

#include "files/file_error.h"
#include "files/pending_names.h"

namespace moe::tools {

namespace fs = std::filesystem;

PendingFolder::PendingFolder(const std::string& path) {
  try {
    fs::path part;
    for (const fs::path& name : fs::path(path)) {
      part /= name;
      make(part.string());
    }
  } catch (...) {
    discard();
    throw;
  }
}

PendingFolder::~PendingFolder() { discard(); }

void PendingFolder::make(const std::string& path) {
  std::error_code error;
  if (fs::create_directory(path, error)) made_.push_back({path, register_pending(path)});
  if (error) throw FileError(path, "the folder cannot be made: " + error.message());
}

void PendingFolder::keep() noexcept {
  for (const Made& made : made_) release_pending(made.slot);
  made_.clear();
}

void PendingFolder::discard() noexcept {
  for (; !made_.empty(); made_.pop_back()) {
    rmdir(made_.back().path.c_str());
    release_pending(made_.back().slot);
  }
}

}  // namespace moe::tools
