#include "cli/models.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "cli/errors.h"
#include "files/text.h"
#include "shapes_json.h"

namespace moe::tools {

namespace {

const std::vector<Model>& all_models() {
  static const std::vector<Model> models = [] {
    std::vector<Model> found;
    const auto shapes = nlohmann::json::parse(kShapesJson);
    for (const auto& model : shapes.at("models")) {
      found.push_back(
          {model.at("name"), model.at("hidden_size"), model.at("num_experts"), model.at("top_k")});
    }
    return found;
  }();
  return models;
}

}  // namespace

const Model& find_model(const std::string& name) {
  for (const Model& model : all_models()) {
    if (model.name == name) return model;
  }
  throw UsageError(text("--shape ", printable(name), ": needs one of ", model_names()));
}

std::string model_names() {
  std::string names;
  for (const Model& model : all_models()) names += (names.empty() ? "" : ", ") + model.name;
  return names;
}

}  // namespace moe::tools
