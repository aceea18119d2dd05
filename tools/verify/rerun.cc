#include "verify/rerun.h"

#include <algorithm>
#include <cstring>

#include "cli/errors.h"
#include "cli/input_options.h"
#include "verify/numbers.h"

namespace moe::tools {

OwnedTensor make_tensor(const std::string& name, FileDType dtype, std::vector<int64_t> shape) {
  const auto num_bytes = static_cast<size_t>(tensor_bytes(dtype, shape).value());
  OwnedTensor owned;
  owned.memory = std::shared_ptr<std::byte[]>(new std::byte[num_bytes]);
  owned.tensor = {.name = name,
                  .dtype = dtype,
                  .shape = std::move(shape),
                  .bytes = {owned.memory.get(), num_bytes}};
  return owned;
}

std::optional<Outcome> rerun(const Operator& op, const Operands& operands, const Settings& settings,
                             std::initializer_list<const char*> outputs) {
  try {
    const Planned planned = op.plan(operands, settings);
    Outcome outcome;
    std::vector<std::byte*> places;
    for (const StoredTensor& tensor : stored_outputs(planned)) {
      outcome.expected.push_back(make_tensor(tensor.name, tensor.dtype, tensor.shape));
      places.push_back(outcome.expected.back().memory.get());
    }
    run_into(planned, places);
    std::erase_if(outcome.expected, [&](const OwnedTensor& owned) {
      const auto is_it = [&](const char* name) { return owned.tensor.name == name; };
      return outputs.size() > 0 && std::none_of(outputs.begin(), outputs.end(), is_it);
    });
    return outcome;
  } catch (const moe::Error&) {
    return {};
  } catch (const UsageError&) {
    return {};
  }
}

std::optional<Outcome> rerun_with_rows(const Suspect& suspect, const RowOfSlot& row_of,
                                       std::initializer_list<const char*> outputs) {
  std::vector<int64_t> rows(static_cast<size_t>(suspect.num_slots()));
  for (int64_t slot = 0; slot < suspect.num_slots(); ++slot) {
    const int64_t row = row_of(slot);
    rows[static_cast<size_t>(slot)] = row >= 0 && row < suspect.sizes.num_rows ? row : -1;
  }
  Operands operands = suspect.operands;
  operands["sorted_indices"] = {TensorDesc::contiguous(DType::kI64, {suspect.num_slots()}),
                                reinterpret_cast<const std::byte*>(rows.data())};
  Settings settings = suspect.settings;
  settings.ep_range.reset();
  settings.rows = suspect.sizes.num_rows;
  settings.check_indices = false;
  return rerun(suspect.op, operands, settings, outputs);
}

std::optional<Outcome> rerun_with_probs(const Suspect& suspect, FileDType dtype,
                                        const std::function<double(int64_t slot)>& prob,
                                        std::initializer_list<const char*> outputs) {
  const OwnedTensor probs =
      make_tensor("probs", dtype, {suspect.sizes.num_tokens, suspect.sizes.top_k});
  for (int64_t slot = 0; slot < suspect.num_slots(); ++slot) {
    store_number(dtype, probs.memory.get(), slot, prob(slot));
  }
  Operands operands = suspect.operands;
  operands["probs"] = operand_of(probs.tensor);
  return rerun(suspect.op, operands, suspect.settings, outputs);
}

}  // namespace moe::tools
