// Whether a drop-in tree works.
#pragma once

#include <string>

namespace moe::tools {

struct DropInCheck {
  std::string library;  // the file that was tried
  std::string problem;  // empty: it loads, starts, knows its operators and ends
  std::string where;    // how the tree was found
  bool found = false;
};

// Of the tree that ASCEND_HOME_PATH names, or that lies beside this program.
DropInCheck check_drop_in();

}  // namespace moe::tools
