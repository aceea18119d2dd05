// The shapes of real models, by name: those of bench/shapes.json.
#pragma once

#include <cstdint>
#include <string>

namespace moe::tools {

struct Model {
  std::string name;
  int64_t hidden_size, num_experts, top_k;
};

// Throws UsageError.
const Model& find_model(const std::string& name);
// "mixtral-8x7b, deepseek-v3, ..."
std::string model_names();

}  // namespace moe::tools
