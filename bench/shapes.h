// shapes.json as C++: the shapes of real models, and the cases that a benchmark runs of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "moe/tensor.h"

namespace moe::bench {

struct Case {
  std::string shape;
  int64_t hidden_size, num_experts, top_k, num_tokens;
  DType dtype;
  std::string rank_name;
  int64_t rank, num_ranks;
  std::string routing;             // "uniform" or "zipf"
  int64_t row_gap_bytes;           // between the rows of the input; 0: contiguous
  std::vector<int32_t> experts{};  // a routing of one's own: the expert of each slot

  int64_t row_bytes() const { return hidden_size * dtype_bytes(dtype); }
  std::string name() const;  // for instance "deepseek-v3/T4096/1of8/uniform/bfloat16"
};

struct Shapes {
  std::vector<Case> sweep;     // the cases of the full run, or of the quick one
  std::vector<Case> decode;    // few tokens, in ascending number
  std::vector<Case> consumer;  // outputs from well inside the second-level cache to far outside
  std::vector<Case> scaling;   // from 1 MB to 8 GB
};

// Throws std::runtime_error where the file is missing or not understood.
Shapes load_shapes(const std::string& path, bool quick);

}  // namespace moe::bench
