// Few tokens that read much, for which kernels have a loop of their own.
#pragma once

#include "moe/moe.h"

namespace test {

// A case of twelve slots, GradCase or UnpermuteCase, as two tokens of six experts with a window of
// eight rows, long enough in every dtype.
template <class Case>
Case few_tokens(Case c) {
  c.num_tokens = 2;
  c.top_k = 6;
  c.hidden_size = 605;
  if (c.ep_range) {
    c.ep_range = moe::EpRange{3, 11};
  } else {
    c.rows = 8;
  }
  return c;
}

// As it is, and as few tokens.
template <class Case>
void expect_both_match(const Case& c) {
  expect_matches_oracle(c);
  expect_matches_oracle(few_tokens(c));
}

}  // namespace test
