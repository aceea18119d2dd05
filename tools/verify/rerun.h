// The operator run again with one thing changed.
#pragma once

#include <functional>
#include <initializer_list>

#include "verify/hypothesis.h"

namespace moe::tools {

// Only the named outputs of a run, or all. Nothing where the library rejects the case.
std::optional<Outcome> rerun(const Operator& op, const Operands& operands, const Settings& settings,
                             std::initializer_list<const char*> outputs = {});

// The row of the buffer that a mistaken program takes for a slot, or -1 for none. Where it lies
// past the buffer it counts as none.
using RowOfSlot = std::function<int64_t(int64_t slot)>;

// The operators that read sorted_indices, with other rows: the indices are replaced by rows of the
// buffer, and the window by the whole buffer.
std::optional<Outcome> rerun_with_rows(const Suspect& suspect, const RowOfSlot& row_of,
                                       std::initializer_list<const char*> outputs = {});

// With other probs, in the dtype given.
std::optional<Outcome> rerun_with_probs(const Suspect& suspect, FileDType dtype,
                                        const std::function<double(int64_t slot)>& prob,
                                        std::initializer_list<const char*> outputs = {});

}  // namespace moe::tools
