#include "shapes.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace moe::bench {
namespace {

using Json = nlohmann::json;

DType dtype_of(const std::string& name) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    if (name == dtype_name(dtype)) return dtype;
  }
  throw std::runtime_error("dtype: \"" + name + "\", but needs a floating one");
}

const Json& by_name(const Json& list, const std::string& name) {
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const Json& item) { return item["name"] == name; });
  if (found == list.end()) throw std::runtime_error("shapes.json: no \"" + name + "\"");
  return *found;
}

Case make_case(const Json& shape, const std::string& dtype, int64_t num_tokens, const Json& rank,
               const std::string& routing, int64_t row_gap_bytes) {
  Case c{};
  c.shape = shape.at("name");
  c.dtype = dtype_of(dtype);
  c.hidden_size = shape.contains("row_bytes")
                      ? shape["row_bytes"].get<int64_t>() / dtype_bytes(c.dtype)
                      : shape.at("hidden_size").get<int64_t>();
  c.num_experts = shape.at("num_experts");
  c.top_k = shape.at("top_k");
  c.num_tokens = num_tokens;
  c.rank_name = rank.at("name");
  c.rank = rank.at("rank");
  c.num_ranks = rank.at("num_ranks");
  c.routing = routing;
  c.row_gap_bytes = row_gap_bytes;
  return c;
}

// Calls add(case) for all combinations of a sweep that make sense.
template <class Add>
void for_each_case(const Json& file, const Json& sweep, Add&& add) {
  for (const Json& shape : file.at(sweep.at("shapes").get<std::string>())) {
    const Json only = sweep.value("only", Json::array());
    if (!only.empty() && std::find(only.begin(), only.end(), shape["name"]) == only.end()) continue;
    for (const std::string dtype : sweep.at("dtypes")) {
      for (const std::string routing : sweep.at("routings")) {
        for (const std::string rank_name : sweep.at("ranks")) {
          const Json& rank = by_name(file.at("ranks"), rank_name);
          if (rank.at("num_ranks") > shape.at("num_experts")) continue;
          for (int64_t num_tokens : sweep.at("num_tokens")) {
            add(make_case(shape, dtype, num_tokens, rank, routing,
                          sweep.value("row_gap_bytes", int64_t{0})));
          }
        }
      }
    }
  }
}

std::vector<Case> sweep_cases(const Json& file, bool quick) {
  std::vector<Case> cases;
  std::set<std::string> seen;
  for (const Json& sweep : file.at("sweeps")) {
    if (sweep.value("quick", false) != quick) continue;
    for_each_case(file, sweep, [&](const Case& c) {
      if (seen.insert(c.name()).second) cases.push_back(c);
    });
  }
  return cases;
}

// One model at several numbers of tokens, all experts.
std::vector<Case> cases_of_model(const Json& file, const Json& list,
                                 const std::vector<int64_t>& num_tokens) {
  std::vector<Case> cases;
  cases.reserve(num_tokens.size());
  const Json& model = by_name(file.at("models"), list.at("model"));
  for (int64_t tokens : num_tokens) {
    cases.push_back(
        make_case(model, list.at("dtype"), tokens, by_name(file.at("ranks"), "all"), "uniform", 0));
  }
  return cases;
}

std::vector<Case> scaling_cases(const Json& file) {
  const Json& list = file.at("scaling");
  const Case one = cases_of_model(file, list, {1}).front();
  std::vector<int64_t> num_tokens;
  for (int64_t megabytes : list.at("megabytes")) {
    num_tokens.push_back(
        std::max<int64_t>(megabytes * 1000000 / (one.row_bytes() * (one.top_k + 1)), 1));
  }
  return cases_of_model(file, list, num_tokens);
}

}  // namespace

std::string Case::name() const {
  std::string name = shape;
  name.append("/T").append(std::to_string(num_tokens)).append("/").append(rank_name);
  name.append("/").append(routing).append("/").append(dtype_name(dtype));
  return row_gap_bytes ? name.append("/strided") : name;
}

Shapes load_shapes(const std::string& path, bool quick) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("shapes: cannot read \"" + path + "\"");
  const Json file = Json::parse(in);
  return {sweep_cases(file, quick),
          cases_of_model(file, file.at("decode"), file["decode"].at("num_tokens")),
          cases_of_model(file, file.at("consumer"), file["consumer"].at("num_tokens")),
          scaling_cases(file)};
}

}  // namespace moe::bench
