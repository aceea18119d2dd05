// moe-permute: runs, checks, explains and measures the operators from files. Each verb stands in
// verbs/.
#include <cstdio>
#include <new>

#include "cli/program.h"
#include "files/pending_file.h"

int main(int argc, char** argv) {
  moe::tools::remove_pending_files_on_signals();
  return moe::tools::run_program(argc, argv);
}
