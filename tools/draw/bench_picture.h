// Times of operators beside their floors, as bars.
#pragma once

#include <string>
#include <vector>

namespace moe::tools {

struct BenchBar {
  std::string name;
  double operator_seconds, floor_seconds;
};

std::string draw_bench(const std::string& title, const std::vector<BenchBar>& bars);

}  // namespace moe::tools
