// Mistakes with the window, in the operators that read sorted_indices.
#include <algorithm>

#include "verify/rerun.h"

namespace moe::tools {
namespace {

bool reads_indices(const Suspect& s) { return !s.is("permute"); }

// Slots whose rows lie in [begin, end) take the row `row - base` of the buffer.
Variant with_window(const Suspect& s, std::string detail, int64_t begin, int64_t end,
                    int64_t base) {
  return {std::move(detail), [&s, begin, end, base] {
            return rerun_with_rows(s, [&](int64_t slot) {
              const int64_t row = s.rows[static_cast<size_t>(slot)];
              return row >= begin && row < end ? row - base : -1;
            });
          }};
}

// The row of a slot, counted from the window's begin, which no index of a file makes overflow.
int64_t local_row(const Suspect& s, int64_t slot) {
  return std::max(s.rows[static_cast<size_t>(slot)], INT64_MIN / 2) - s.sizes.window.begin;
}

std::string by_one(const char* what, int64_t from, int64_t by) {
  return text(what, " ", from + by, " instead of ", from);
}

}  // namespace

std::vector<Variant> window_off_by_one(const Suspect& s) {
  std::vector<Variant> variants;
  if (!reads_indices(s)) return variants;
  const auto [begin, end] = s.sizes.window;
  for (const int64_t by : {-1, 1}) {
    variants.push_back(
        with_window(s, by_one("the window begins at row", begin, by), begin + by, end, begin + by));
    variants.push_back(
        with_window(s, by_one("the window ends at row", end, by), begin, end + by, begin));
    variants.push_back(with_window(s, by_one("begin and end both off: begin", begin, by),
                                   begin + by, end + by, begin + by));
    variants.push_back(
        with_window(s, by_one("the window is right, but the row is taken relative to", begin, by),
                    begin, end, begin + by));
    variants.push_back(
        with_window(s, by_one("rows are compared with begin", begin, by), begin + by, end, begin));
  }
  return variants;
}

std::vector<Variant> window_of_other_rank(const Suspect& s) {
  std::vector<Variant> variants;
  if (!reads_indices(s) || !s.rank || s.rank->num_ranks > 64) return variants;
  for (int64_t rank = 0; rank < s.rank->num_ranks; ++rank) {
    if (rank == s.rank->rank) continue;
    const EpRange window =
        ep_range_of_rank(std::span<const int64_t>(s.counts), rank, s.rank->num_ranks);
    variants.push_back(with_window(s, text("the window of rank ", rank, " of ", s.rank->num_ranks),
                                   window.begin, window.end, window.begin));
  }
  return variants;
}

std::vector<Variant> window_times_top_k(const Suspect& s) {
  const auto [begin, end] = s.sizes.window;
  const int64_t k = s.sizes.top_k;
  if (!reads_indices(s) || k == 1) return {};
  return {with_window(s, text("the window [", begin * k, ", ", end * k, ")"), begin * k, end * k,
                      begin * k),
          with_window(s, text("the window [", begin / k, ", ", end / k, ")"), begin / k, end / k,
                      begin / k)};
}

std::vector<Variant> window_ignored(const Suspect& s) {
  if (!reads_indices(s)) return {};
  return {with_window(s, text("the window [0, ", s.sizes.num_rows, "), all rows of the buffer"), 0,
                      s.sizes.num_rows, 0)};
}

std::vector<Variant> begin_not_subtracted(const Suspect& s) {
  const auto [begin, end] = s.sizes.window;
  if (!reads_indices(s) || begin == 0) return {};
  return {with_window(
      s,
      text("global row ", begin, " is looked for at row ", begin, " of the buffer, not at row 0"),
      begin, end, 0)};
}

std::vector<Variant> rows_outside_wrap(const Suspect& s) {
  if (!reads_indices(s)) return {};
  return {{"no check of the window, and a negative row counts from the buffer's end", [&s] {
             return rerun_with_rows(s, [&](int64_t slot) {
               const int64_t row = local_row(s, slot);
               return row < 0 ? row + s.sizes.num_rows : row;
             });
           }}};
}

std::vector<Variant> rows_outside_clamped(const Suspect& s) {
  // Two slots that share a row have no one answer there.
  if (!reads_indices(s) || s.is("unpermute-grad") || s.sizes.num_rows == 0) return {};
  return {{"slots outside the window take its first or last row instead of none", [&s] {
             return rerun_with_rows(s, [&](int64_t slot) {
               const int64_t row = local_row(s, slot);
               return std::clamp<int64_t>(row, 0, s.num_window_rows() - 1);
             });
           }}};
}

std::vector<Variant> rows_times_top_k(const Suspect& s) {
  const int64_t rows = s.num_window_rows() * s.sizes.top_k, begin = s.sizes.window.begin;
  if (!reads_indices(s) || s.sizes.top_k == 1 || s.sizes.num_rows < rows) return {};
  return {with_window(s,
                      text("the buffer is taken to hold ", rows, " rows of the window, which has ",
                           s.num_window_rows()),
                      begin, begin + rows, begin)};
}

std::vector<Variant> padding_read(const Suspect& s) {
  const int64_t begin = s.sizes.window.begin;
  if (!reads_indices(s) || s.sizes.num_rows <= s.num_window_rows()) return {};
  return {with_window(s,
                      text("all ", s.sizes.num_rows, " rows of the buffer are read, but only ",
                           s.num_window_rows(), " are the window's"),
                      begin, begin + s.sizes.num_rows, begin)};
}

}  // namespace moe::tools
