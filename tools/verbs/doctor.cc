// doctor: what this machine and this installation can do.
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "cli/bandwidth.h"
#include "cli/drop_in_check.h"
#include "cli/progress.h"
#include "verbs/verbs.h"

namespace moe::tools {
namespace {

constexpr const char* kFooter =
    "Exit code 0: all is well. 1: the drop-in tree is there but does not work.\n"
    "\nFor instance:\n  moe-permute doctor\n  moe-permute doctor --json --no-measure";

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

// Of the oneTBB that runs here; empty with the other thread backend.
std::string tbb_version() {
  auto* version = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "TBB_runtime_version"));
  return version ? version() : "";
}

void report_cpu(Output& output) {
  const auto kernels = PermuteWithEpGrad::kernel_names();
  output.line("CPU targets     ", joined(kernels), " (fastest first)");
  output.line("threads         ", num_threads(), " of ", sysconf(_SC_NPROCESSORS_ONLN),
              " processors");
  output.facts["cpu_targets"] = kernels;
  output.facts["threads"] = num_threads();
  output.facts["processors"] = sysconf(_SC_NPROCESSORS_ONLN);
}

void report_caches(Output& output) {
  const struct {
    const char* name;
    int key;
  } caches[] = {{"L1d", _SC_LEVEL1_DCACHE_SIZE},
                {"L2", _SC_LEVEL2_CACHE_SIZE},
                {"L3", _SC_LEVEL3_CACHE_SIZE}};
  std::string words;
  output.facts["cache_bytes"] = Json::object();
  for (const auto& cache : caches) {
    const long bytes = sysconf(cache.key);
    if (bytes <= 0) continue;
    words += text(words.empty() ? "" : ", ", cache.name, " ", bytes / 1024, " KiB");
    output.facts["cache_bytes"][cache.name] = bytes;
  }
  output.line("caches          ", words.empty() ? "the system does not say" : words);
}

void report_versions(Output& output) {
  const std::string tbb = tbb_version();
  output.line("versions        moe-permute ", MOE_VERSION, "; ",
              tbb.empty() ? "std::thread" : "oneTBB " + tbb, "; Highway ", MOE_HIGHWAY_VERSION,
              "; ", MOE_COMPILER, "; glibc ", gnu_get_libc_version());
  output.line("                CLI11 ", CLI11_VERSION, ", nlohmann-json ",
              NLOHMANN_JSON_VERSION_MAJOR, ".", NLOHMANN_JSON_VERSION_MINOR, ".",
              NLOHMANN_JSON_VERSION_PATCH);
  output.facts["versions"] = {{"moe_permute", MOE_VERSION},      {"tbb", tbb},
                              {"highway", MOE_HIGHWAY_VERSION},  {"compiler", MOE_COMPILER},
                              {"glibc", gnu_get_libc_version()}, {"cli11", CLI11_VERSION}};
}

void report_bandwidth(Output& output) {
  const Bandwidth bandwidth = measure_bandwidth(num_threads());
  output.line("memory          ", bytes_text(bandwidth.bytes_per_second),
              " a second, read and written (", bandwidth.pass, ")");
  output.facts["memory"] = {{"bytes_per_second", bandwidth.bytes_per_second},
                            {"pass", bandwidth.pass}};
}

// Whether all is well: a tree that is not there is no fault.
bool report_drop_in(Output& output) {
  const DropInCheck check = check_drop_in();
  output.line("drop-in tree    ", check.problem.empty() ? "works: " : "", check.library,
              check.problem.empty() ? "" : " " + check.problem, " (", check.where, ")");
  output.facts["drop_in"] = {{"library", check.library},
                             {"found", check.found},
                             {"usable", check.problem.empty()},
                             {"problem", check.problem}};
  return !check.found || check.problem.empty();
}

class DoctorVerb final : public Verb {
 public:
  const char* name() const override { return "doctor"; }
  std::string summary() const override {
    return "Say what this machine and this installation can do";
  }

  void add_options(CLI::App& app) override {
    app.add_flag("--no-measure", no_measure_, "Do not measure memory");
    app.footer(kFooter);
  }

  int run(Output& output) override {
    Progress progress(!output.quiet);
    progress.stage("measuring memory");
    report_cpu(output);
    report_caches(output);
    if (!no_measure_) report_bandwidth(output);
    report_versions(output);
    const bool well = report_drop_in(output);
    for (const char* name : {"MOE_KERNEL", "MOE_NUM_THREADS"}) {
      const char* value = std::getenv(name);
      if (value) output.line("environment     ", name, "=", printable(value));
      output.facts["environment"][name] = value ? Json(value) : Json();
    }
    return well ? kOk : kDifference;
  }

 private:
  bool no_measure_ = false;
};

}  // namespace

std::unique_ptr<Verb> doctor_verb() { return std::make_unique<DoctorVerb>(); }

}  // namespace moe::tools
