// A mistake that somebody may have made, and what it would have given.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "verify/suspect.h"

namespace moe::tools {

// A tensor with memory of its own.
struct OwnedTensor {
  StoredTensor tensor;
  std::shared_ptr<std::byte[]> memory;
};
OwnedTensor make_tensor(const std::string& name, FileDType dtype, std::vector<int64_t> shape);

// What the mistake would have given: of the outputs that it touches. Where the mistake is in what
// was handed over and not in its values, `theirs` holds it put right, to be compared instead.
struct Outcome {
  std::vector<OwnedTensor> expected{};
  std::vector<OwnedTensor> theirs{};
};

// One way to make the mistake. Made only when it is tried: each may be as large as the outputs.
struct Variant {
  std::string detail;  // "begins at row 4097 instead of 4096"
  std::function<std::optional<Outcome>()> make;
};

struct Hypothesis {
  const char* id;       // for programs: "window-off-by-one"
  const char* mistake;  // for people, one line
  // Every way in which this case could show it; none where it could not.
  std::vector<Variant> (*variants)(const Suspect&);
};

// The list, likelier and more special ones first. A new one is a function of the kind above in a
// file of its kind, and a line in hypotheses.cc.
const std::vector<Hypothesis>& all_hypotheses();

// windows.cc
std::vector<Variant> window_off_by_one(const Suspect&);
std::vector<Variant> window_of_other_rank(const Suspect&);
std::vector<Variant> window_times_top_k(const Suspect&);
std::vector<Variant> window_ignored(const Suspect&);
std::vector<Variant> begin_not_subtracted(const Suspect&);
std::vector<Variant> rows_outside_wrap(const Suspect&);
std::vector<Variant> rows_outside_clamped(const Suspect&);
std::vector<Variant> rows_times_top_k(const Suspect&);
std::vector<Variant> padding_read(const Suspect&);
// slots.cc
std::vector<Variant> argsort_for_inverse(const Suspect&);
std::vector<Variant> slots_transposed(const Suspect&);
std::vector<Variant> one_slot_only(const Suspect&);
// weights.cc
std::vector<Variant> probs_not_applied(const Suspect&);
std::vector<Variant> probs_applied(const Suspect&);
std::vector<Variant> probs_applied_twice(const Suspect&);
std::vector<Variant> probs_rounded(const Suspect&);
std::vector<Variant> probs_normalized(const Suspect&);
std::vector<Variant> probs_by_row(const Suspect&);
std::vector<Variant> probs_transposed(const Suspect&);
// arithmetic.cc
std::vector<Variant> narrow_sums(const Suspect&);
std::vector<Variant> other_order(const Suspect&);
std::vector<Variant> wide_sums(const Suspect&);
std::vector<Variant> fused_sums(const Suspect&);
std::vector<Variant> rounded_products(const Suspect&);
std::vector<Variant> cut_results(const Suspect&);
std::vector<Variant> means(const Suspect&);
// dots.cc
std::vector<Variant> plain_dot(const Suspect&);
std::vector<Variant> narrow_dot(const Suspect&);
// gathers.cc
std::vector<Variant> gather_window(const Suspect&);
std::vector<Variant> gather_other_rank(const Suspect&);
std::vector<Variant> gather_window_times_top_k(const Suspect&);
std::vector<Variant> gather_window_ignored(const Suspect&);
std::vector<Variant> gather_argsort(const Suspect&);
std::vector<Variant> gather_slots_transposed(const Suspect&);
std::vector<Variant> gather_wrong_tokens(const Suspect&);
std::vector<Variant> gather_not_permuted(const Suspect&);
std::vector<Variant> gather_descending(const Suspect&);
std::vector<Variant> gather_unrouted_first(const Suspect&);
std::vector<Variant> gather_unstable(const Suspect&);
std::vector<Variant> indices_of_window(const Suspect&);
// handed_over.cc
std::vector<Variant> padded_buffer(const Suspect&);
std::vector<Variant> padded_by_top_k(const Suspect&);
std::vector<Variant> tokens_left_out(const Suspect&);
std::vector<Variant> matrix_transposed(const Suspect&);
std::vector<Variant> other_dtype(const Suspect&);
std::vector<Variant> never_written(const Suspect&);
std::vector<Variant> zero_signs(const Suspect&);
std::vector<Variant> subnormals_flushed(const Suspect&);
std::vector<Variant> constant_factor(const Suspect&);

}  // namespace moe::tools
