#include "cli/describe.h"

#include <cstdio>

namespace moe::tools {

std::string describe(const Sizes& sizes) {
  return text(sizes.num_tokens, " tokens, top_k ", sizes.top_k, ", hidden_size ", sizes.hidden_size,
              ", ", dtype_name(sizes.dtype), "; window [", sizes.window.begin, ", ",
              sizes.window.end, ") of ", sizes.num_slots(), " rows");
}

Json to_json(const Sizes& sizes) {
  return {{"num_tokens", sizes.num_tokens},
          {"top_k", sizes.top_k},
          {"hidden_size", sizes.hidden_size},
          {"num_slots", sizes.num_slots()},
          {"dtype", dtype_name(sizes.dtype)},
          {"ep_range", {sizes.window.begin, sizes.window.end}},
          {"rows", sizes.num_rows}};
}

std::string describe(const StoredTensor& tensor) {
  return text(printable(tensor.name), " ", shape_text(tensor.shape), " ", facts(tensor.dtype).name);
}

Json to_json(const StoredTensor& tensor) {
  return {{"name", tensor.name}, {"dtype", facts(tensor.dtype).name}, {"shape", tensor.shape}};
}

Json to_json(std::span<const StoredTensor> tensors) {
  Json list = Json::array();
  for (const StoredTensor& tensor : tensors) list.push_back(to_json(tensor));
  return list;
}

std::string seconds_text(double seconds) {
  char out[32];
  if (seconds >= 1) {
    std::snprintf(out, sizeof out, "%.3g s", seconds);
  } else if (seconds >= 1e-3) {
    std::snprintf(out, sizeof out, "%.3g ms", seconds * 1e3);
  } else {
    std::snprintf(out, sizeof out, "%.3g us", seconds * 1e6);
  }
  return out;
}

}  // namespace moe::tools
