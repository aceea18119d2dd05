#include "verify/place.h"

#include <algorithm>
#include <cstdio>

#include "verify/numbers.h"

namespace moe::tools {
namespace {

// "[3, 5]"
std::vector<int64_t> unravel(const StoredTensor& tensor, int64_t flat) {
  std::vector<int64_t> index(tensor.shape.size());
  for (size_t d = index.size(); d-- > 0;) {
    index[d] = flat % std::max<int64_t>(tensor.shape[d], 1);
    flat /= std::max<int64_t>(tensor.shape[d], 1);
  }
  return index;
}

// The slot of an element: of its own, of its row, or the first one of its token in the window; -1
// where there is none.
int64_t slot_of(const Suspect& s, const std::string& name, const std::vector<int64_t>& index) {
  const int64_t k = s.sizes.top_k;
  if (name == "probs_grad") return index[0] * k + index[1];
  if (name == "sorted_indices") return index[0];
  if (name == "tokens_per_expert") return -1;
  const auto [begin, end] = s.sizes.window;
  if (name == "tokens_grad" || name == "out") {
    for (int64_t slot = index[0] * k; slot < (index[0] + 1) * k; ++slot) {
      const int64_t row = s.rows[static_cast<size_t>(slot)];
      if (row >= begin && row < end) return slot;
    }
    return -1;
  }
  const auto found = std::find(s.rows.begin(), s.rows.end(), begin + index[0]);
  return found == s.rows.end() || index[0] >= end - begin ? -1 : found - s.rows.begin();
}

}  // namespace

Place place_of(const Suspect& s, const StoredTensor& tensor, int64_t flat) {
  const std::vector<int64_t> index = unravel(tensor, flat);
  Place place{text(tensor.name, shape_text(index)), {{"index", index}}};
  const int64_t slot = slot_of(s, tensor.name, index);
  if (slot >= 0) {
    const int64_t row = s.rows[static_cast<size_t>(slot)];
    place.words += text(": token ", slot / s.sizes.top_k, ", slot ", slot, " (k ",
                        slot % s.sizes.top_k, "), global row ", row);
    place.facts["token"] = slot / s.sizes.top_k;
    place.facts["slot"] = slot;
    place.facts["global_row"] = row;
  } else if (tensor.name == "tokens_grad" || tensor.name == "out") {
    place.words += text(": token ", index[0], ", which has no slot in the window");
    place.facts["token"] = index[0];
  }
  return place;
}

std::string element_text(const StoredTensor& tensor, int64_t flat) {
  const double value = load_number(tensor.dtype, tensor.bytes.data(), flat);
  char out[40];
  const bool narrow = facts(tensor.dtype).bits == 16 && is_float(tensor.dtype);
  const int digits = narrow ? 5 : tensor.dtype == FileDType::kF32 ? 9 : 17;
  std::snprintf(out, sizeof out, "%.*g", digits, value);
  return out;
}

}  // namespace moe::tools
