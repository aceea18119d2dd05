#include "draw/bench_picture.h"

#include <algorithm>
#include <cstdio>

#include "cli/describe.h"
#include "draw/svg.h"

namespace moe::tools {
namespace {

constexpr int kWidth = 760, kLeft = 150, kRight = 150, kTop = 84, kStep = 64;

std::string percent(double share) {
  char out[32];
  std::snprintf(out, sizeof out, "%.0f %%", 100 * share);
  return out;
}

}  // namespace

std::string draw_bench(const std::string& title, const std::vector<BenchBar>& bars) {
  Svg svg(kWidth, "Time of operators beside the floor of the bytes they move");
  svg.words(24, 34, title, "title");
  svg.words(24, 56, "the floor: the fastest plain pass over as many bytes, on this machine",
            "quiet");
  double longest = 0;
  for (const BenchBar& bar : bars)
    longest = std::max({longest, bar.operator_seconds, bar.floor_seconds});
  const auto length = [&](double seconds) { return (kWidth - kLeft - kRight) * seconds / longest; };
  double y = kTop;
  for (const BenchBar& bar : bars) {
    svg.words(kLeft - 12, y + 23, bar.name, "text", "end");
    svg.rect(kLeft, y, length(bar.operator_seconds), 20, "bar", 3);
    svg.words(kLeft + length(bar.operator_seconds) + 8, y + 15,
              text(seconds_text(bar.operator_seconds), ", ",
                   percent(bar.floor_seconds / bar.operator_seconds)));
    svg.rect(kLeft, y + 24, length(bar.floor_seconds), 12, "bar2", 3);
    svg.words(kLeft + length(bar.floor_seconds) + 8, y + 35,
              text("floor ", seconds_text(bar.floor_seconds)), "quiet small");
    y += kStep;
  }
  return svg.str(static_cast<int>(y) + 8);
}

}  // namespace moe::tools
