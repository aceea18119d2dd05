#include "cli/drop_in_check.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "files/text.h"

namespace moe::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOperators[] = {
    "aclnnMoeTokenPermute",       "aclnnMoeTokenPermuteWithEp",
    "aclnnMoeTokenPermuteGrad",   "aclnnMoeTokenPermuteWithEpGrad",
    "aclnnMoeTokenUnpermute",     "aclnnMoeTokenUnpermuteWithEp",
    "aclnnMoeTokenUnpermuteGrad", "aclnnMoeTokenUnpermuteWithEpGrad"};

class Library {
 public:
  explicit Library(const std::string& path)
      : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
    if (handle_) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  explicit operator bool() const { return handle_ != nullptr; }
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  void* handle_;
};

std::string problem_of_operators(const Library& library) {
  for (const std::string name : kOperators) {
    for (const std::string& each : {name, name + "GetWorkspaceSize"}) {
      if (!library.function<void()>(each.c_str())) return "has no " + each;
    }
  }
  return {};
}

// Starts it, sees a device and ends it again.
std::string problem_of_start(const Library& library) {
  auto* init = library.function<int(const char*)>("aclInit");
  auto* count = library.function<int(uint32_t*)>("aclrtGetDeviceCount");
  auto* finalize = library.function<int()>("aclFinalize");
  if (!init || !count || !finalize) return "has no aclInit, aclrtGetDeviceCount or aclFinalize";
  if (const int code = init(nullptr)) return text("aclInit gives ", code);
  uint32_t num_devices = 0;
  const int code = count(&num_devices);
  finalize();
  if (code != 0 || num_devices == 0)
    return text("aclrtGetDeviceCount gives ", code, ", ", num_devices, " devices");
  return {};
}

std::string problem_of(const std::string& path) {
  const Library library(path);
  if (!library) return text("does not load: ", dlerror());
  const std::string problem = problem_of_operators(library);
  return problem.empty() ? problem_of_start(library) : problem;
}

}  // namespace

DropInCheck check_drop_in() {
  DropInCheck check;
  std::error_code error;
  const char* home = std::getenv("ASCEND_HOME_PATH");
  check.where = home ? "ASCEND_HOME_PATH" : "beside this program";
  const fs::path tree =
      home ? fs::path(home)
           : fs::read_symlink("/proc/self/exe", error).parent_path().parent_path() / "acl";
  check.library = (tree / "lib64" / "libascendcl.so").string();
  check.found = fs::exists(check.library, error);
  check.problem = check.found ? problem_of(check.library) : "is not there";
  return check;
}

}  // namespace moe::tools
