#include "cli/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <new>

#include "cli/errors.h"
#include "cli/help.h"
#include "cli/manual.h"
#include "cli/verb.h"
#include "files/file_error.h"
#include "moe/error.h"
#include "verbs/verbs.h"

namespace moe::tools {
namespace {

constexpr const char* kDescription =
    "Token permutation for mixture-of-experts models, from files: runs the operators, checks\n"
    "somebody else's results and says what is wrong with them, explains, measures and draws.";
constexpr const char* kFooter =
    "moe-permute VERB --help explains a verb, with examples; the manual: man moe-permute.\n"
    "\nExit codes: 0 all is well; 1 verify found a difference; 2 wrong use, or tensors that do "
    "not\n"
    "fit; 3 a file cannot be read or written, or breaks its format; 4 out of memory; 5 a bug.";

struct Failure {
  int code;
  std::string message;
};

// What an exception means to the user.
Failure failure_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const UsageError& e) {
    return {kWrongUse, e.what()};
  } catch (const FileError& e) {
    return {kFileTrouble, e.what()};
  } catch (const moe::Error& e) {
    return {kWrongUse, e.what()};
  } catch (const std::bad_alloc&) {
    return {kOutOfMemory, "out of memory: use a smaller case, or a machine that has more"};
  } catch (const std::exception& e) {
    return {kBug, text("unexpected, please report it: ", e.what())};
  }
}

int report_failure(const Failure& failure, Output& output) {
  std::fprintf(stderr, "error: %s\n", harmless(failure.message).c_str());
  if (output.json) {
    output.facts = {{"error", failure.message}, {"exit_code", failure.code}};
    output.finish();
  }
  return failure.code;
}

class Program {
 public:
  explicit Program(Output& output) : verbs_(all_verbs()), output_(output) {
    app_.name("moe-permute");
    app_.set_version_flag("--version", "moe-permute " MOE_VERSION);
    app_.footer(kFooter);
    app_.require_subcommand(1);
    use_own_help(app_);  // handed on to each verb
    for (const auto& verb : verbs_) add(*verb);
  }

  int run(int argc, char** argv) {
    // For the build: what gets installed beside the program.
    if (argc == 3 && argv[1] == std::string("--write-manual")) {
      write_manual(app_, argv[2]);
      return kOk;
    }
    const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
    // Errors of the arguments themselves are to be told as it asks, too.
    output_.json = std::count(arguments.begin(), arguments.end(), "--json") > 0;
    for (const std::string& argument : arguments) check_value(argument);
    check_verb(argc, argv);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& e) {
      return app_.exit(e);  // --help, --version
    } catch (const CLI::ParseError& e) {
      return report_failure({kWrongUse, usage(e.what())}, output_);
    }
    for (const auto& verb : verbs_) {
      if (app_.got_subcommand(verb->name())) return run(*verb);
    }
    return kWrongUse;
  }

 private:
  void add(Verb& verb) {
    CLI::App* app = app_.add_subcommand(verb.name(), verb.summary());
    app->add_flag("--json", output_.json, "Print one JSON object instead of text");
    app->add_flag("-q,--quiet", output_.quiet, "Print nothing but errors");
    verb.add_options(*app);
  }

  // The parser would take the next argument for a value that is missing, as in --ep-range=$NOT_SET.
  static void check_value(const std::string& given) {
    if (given.starts_with("--") && given.find('=') == given.size() - 1) {
      throw UsageError(text(printable(given), ": needs a value behind the ="));
    }
  }

  void check_verb(int argc, char** argv) const {
    const std::string given = argc > 1 ? argv[1] : "";
    std::string names;
    for (const auto& verb : verbs_) {
      if (given == verb->name()) return;
      names += text(names.empty() ? "" : ", ", verb->name());
    }
    if (given == "-h" || given == "--help" || given == "--version") return;
    throw UsageError(
        text("verb: ", given.empty() ? "none given" : quoted(given), ", but needs one of ", names));
  }

  int run(Verb& verb) {
    output_.facts["verb"] = verb.name();
    const int code = verb.run(output_);
    output_.finish();
    return code;
  }

  // One line, whatever the parser says, and where to read more.
  std::string usage(std::string problem) const {
    std::replace(problem.begin(), problem.end(), '\n', ' ');
    const auto chosen = app_.get_subcommands();
    return text(printable(problem), " (see moe-permute ",
                chosen.empty() ? "" : chosen[0]->get_name() + " ", "--help)");
  }

  CLI::App app_{kDescription};
  std::vector<std::unique_ptr<Verb>> verbs_;
  Output& output_;
};

}  // namespace

int run_program(int argc, char** argv) {
  Output output;
  try {
    try {
      return Program(output).run(argc, argv);
    } catch (...) {
      return report_failure(failure_of(std::current_exception()), output);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return kFileTrouble;  // not even the message got out
  }
}

}  // namespace moe::tools
