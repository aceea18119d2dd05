#include "cli/operator_settings.h"

#include <CLI/CLI.hpp>

#include "cli/errors.h"
#include "cli/ranges.h"

namespace moe::tools {

void OperatorSettings::add(CLI::App& app) {
  window_.add(app);
  app.add_option("--top-k", top_k_, "Experts per token, where no tensor of the files shows it")
      ->check(between(int64_t{1}, int64_t{1} << 31))
      ->type_name("K");
  app.add_option("--rows", rows_,
                 "Rows of permuted outputs: more than the window has are filled with zeros")
      ->check(between(int64_t{0}, int64_t{1} << 48))
      ->type_name("N");
  app.add_flag("--wide-indices", wide_indices_, "Write indices as int64 instead of int32");
  app.add_flag("--check-indices", check_indices_,
               "Stop, naming the slot, where an index is out of range or comes twice");
  add_engine_options(app, engine_);
}

Settings OperatorSettings::resolve(const Inputs& inputs, const Operator& op) const {
  if (rows_ && !op.makes_rows()) {
    throw UsageError(text("--rows: is for permuted outputs, but ", op.verb, " has none"));
  }
  return {.ep_range = window_.window(inputs),
          .top_k = top_k_,
          .num_experts = window_.num_experts(),
          .rows = rows_,
          .index_dtype = wide_indices_ ? DType::kI64 : DType::kI32,
          .check_indices = check_indices_,
          .engine = engine_};
}

}  // namespace moe::tools
