#include "draw/routing_picture.h"

#include <algorithm>
#include <numeric>

#include "draw/svg.h"
#include "moe/expert_range.h"

namespace moe::tools {
namespace {

constexpr int kWidth = 1080, kLeft = 70, kRight = 30, kTop = 96, kBars = 260;
constexpr int kFewSlots = 48, kFewTokens = 16;  // for drawing each copy
constexpr int64_t kMostBars = 512;
constexpr double kStep = 26, kCell = 22;

EpRange window_of(const RoutingView& routing, int64_t rank, int64_t num_ranks) {
  return ep_range_of_rank(std::span<const int64_t>(routing.tokens_per_expert), rank, num_ranks);
}

class Picture {
 public:
  Picture(const RoutingView& routing, int64_t num_ranks)
      : routing_(routing),
        num_ranks_(num_ranks),
        imbalance_(imbalance_of(routing, num_ranks)),
        svg_(kWidth, "Tokens per expert and the windows of ranks") {}

  std::string draw() {
    heading();
    bands();
    bars();
    mean();
    int height = kTop + kBars + 60;
    if (routing_.num_slots() <= kFewSlots && routing_.num_tokens <= kFewTokens &&
        !routing_.experts.empty()) {
      height = copies(height);
    }
    return svg_.str(height);
  }

 private:
  // Several experts share a bar where there are too many.
  int64_t experts_per_bar() const {
    return std::max<int64_t>((routing_.num_experts + kMostBars - 1) / kMostBars, 1);
  }
  double x_of(double expert) const {
    const double width = kWidth - kLeft - kRight;
    return kLeft + width * expert / static_cast<double>(std::max<int64_t>(routing_.num_experts, 1));
  }
  double bar_height(double rows) const {
    const int64_t largest = std::max<int64_t>(imbalance_.largest_expert, 1);
    return kBars * rows / static_cast<double>(largest);
  }

  void heading() {
    svg_.words(kLeft, 34, "Tokens per expert", "title");
    svg_.words(
        kLeft, 56,
        text(routing_.num_tokens, " tokens, top_k ", routing_.top_k, ", ", routing_.num_experts,
             " experts; the largest has ", imbalance_.largest_expert, ", ",
             decimal(imbalance_.expert_factor()), " times the mean; ", imbalance_.num_empty_experts,
             " empty",
             routing_.num_unrouted ? text("; ", routing_.num_unrouted, " slots not routed") : ""),
        "quiet");
    if (num_ranks_ < 2) return;
    svg_.words(kLeft, 74,
               text(num_ranks_, " ranks; the largest has ", imbalance_.largest_rank, " rows, ",
                    decimal(imbalance_.rank_factor()), " times the mean; ",
                    imbalance_.num_empty_ranks, " empty"),
               "quiet");
  }

  // One behind the experts of each rank, every second one darker.
  void bands() {
    const auto first_expert = [&](int64_t rank) {
      return rank * routing_.num_experts / num_ranks_;
    };
    for (int64_t rank = 0; rank < num_ranks_; ++rank) {
      const double begin = x_of(static_cast<double>(first_expert(rank)));
      const double end = x_of(static_cast<double>(first_expert(rank + 1)));
      const EpRange window = window_of(routing_, rank, num_ranks_);
      svg_.tooltip_rect(begin, kTop - 4, end - begin, kBars + 4, rank % 2 ? "card" : "band",
                        text("rank ", rank, ": rows [", window.begin, ", ", window.end, ")"));
      if (end - begin < 44) continue;
      const double middle = (begin + end) / 2;
      svg_.words(middle, kTop + kBars + 34, text("rank ", rank), "text small", "middle");
      svg_.words(middle, kTop + kBars + 50, text(window.end - window.begin, " rows"), "quiet small",
                 "middle");
    }
  }

  void bars() {
    const int64_t step = experts_per_bar();
    for (int64_t expert = 0; expert < routing_.num_experts; expert += step) {
      const int64_t end = std::min(expert + step, routing_.num_experts);
      const auto* counts = routing_.tokens_per_expert.data();
      const int64_t rows = *std::max_element(counts + expert, counts + end);
      const double x = x_of(static_cast<double>(expert)), next = x_of(static_cast<double>(end));
      const double gap = std::min(2.0, (next - x) / 5),
                   height = bar_height(static_cast<double>(rows));
      svg_.tooltip_rect(
          x + gap / 2, kTop + kBars - height, next - x - gap, height, "bar",
          text("expert ", expert, end - expert > 1 ? text(" to ", end - 1, ", at most") : "", ": ",
               rows));
    }
    svg_.line(kLeft, kTop + kBars, kWidth - kRight, kTop + kBars, "axis");
    svg_.words(kLeft - 8, kTop + 5, std::to_string(imbalance_.largest_expert), "quiet small",
               "end");
    svg_.words(kLeft - 8, kTop + kBars + 4, "0", "quiet small", "end");
    svg_.words(kLeft, kTop + kBars + 17, "expert 0", "quiet small");
    svg_.words(kWidth - kRight, kTop + kBars + 17, text("expert ", routing_.num_experts - 1),
               "quiet small", "end");
  }

  void mean() {
    const double y = kTop + kBars - bar_height(imbalance_.mean_expert);
    svg_.line(kLeft, y, kWidth - kRight, y, "mark");
    svg_.words(kLeft - 8, y + 4, text("mean ", decimal(imbalance_.mean_expert)), "marktext small",
               "end");
  }

  // Slots on the left, rows in the order of experts on the right.
  int copies(int top) {
    svg_.words(kLeft, top + 24, "Where each token's copies go", "title");
    svg_.words(kLeft, top + 44, "slots of the tokens, k = 0, 1, ...", "quiet small");
    svg_.words(620, top + 44, "rows, sorted by expert", "quiet small");
    const double first = top + 58;
    for (int64_t slot = 0; slot < routing_.num_slots(); ++slot) copy(slot, first);
    return static_cast<int>(first + kStep * static_cast<double>(routing_.num_slots())) + 20;
  }

  void copy(int64_t slot, double first) {
    const int64_t token = slot / routing_.top_k,
                  row = routing_.sorted_indices[static_cast<size_t>(slot)];
    const int64_t expert = routing_.experts[static_cast<size_t>(slot)];
    const int64_t rank = num_ranks_ > 0 ? routing_.rank_of_row(row, num_ranks_) : -1;
    const bool routed = expert >= 0 && expert < routing_.num_experts;
    const std::string colour = std::to_string(token % 8);
    const double y = first + kStep * static_cast<double>(slot),
                 to = first + kStep * static_cast<double>(row);
    svg_.curve(kLeft + 210, y + kCell / 2, 620, to + kCell / 2, "l" + colour);
    svg_.rect(kLeft, y, 210, kCell, "t" + colour, 4);
    svg_.words(kLeft + 8, y + 16, text("token ", token, ", k ", slot % routing_.top_k), "on small");
    svg_.words(kLeft + 202, y + 16, routed ? text("expert ", expert) : "not routed", "on small",
               "end");
    svg_.rect(620, to, 210, kCell, "t" + colour, 4);
    svg_.words(628, to + 16, text("row ", row), "on small");
    svg_.words(822, to + 16, text("token ", token), "on small", "end");
    svg_.words(842, to + 16,
               text(routed ? text("expert ", expert) : "not routed",
                    rank >= 0 ? text(", rank ", rank) : ""),
               "quiet small");
  }

  const RoutingView& routing_;
  int64_t num_ranks_;
  Imbalance imbalance_;
  Svg svg_;
};

}  // namespace

Imbalance imbalance_of(const RoutingView& routing, int64_t num_ranks) {
  Imbalance imbalance;
  const auto& counts = routing.tokens_per_expert;
  const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (int64_t count : counts) {
    imbalance.largest_expert = std::max(imbalance.largest_expert, count);
    imbalance.num_empty_experts += count == 0;
  }
  if (!counts.empty())
    imbalance.mean_expert = static_cast<double>(total) / static_cast<double>(counts.size());
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    const EpRange window = window_of(routing, rank, num_ranks);
    imbalance.largest_rank = std::max(imbalance.largest_rank, window.end - window.begin);
    imbalance.num_empty_ranks += window.begin == window.end;
  }
  if (num_ranks > 0)
    imbalance.mean_rank = static_cast<double>(total) / static_cast<double>(num_ranks);
  return imbalance;
}

std::string draw_routing(const RoutingView& routing, int64_t num_ranks) {
  return Picture(routing, num_ranks).draw();
}

}  // namespace moe::tools
