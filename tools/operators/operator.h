// The four operators behind one door: tensors by name in, a plan and its outputs by name out.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "moe/moe.h"

namespace moe::tools {

// A tensor that an operator reads.
struct Operand {
  TensorDesc desc;
  const std::byte* data = nullptr;
};
using Operands = std::map<std::string, Operand>;

// What the command line says besides the tensors.
struct Settings {
  std::optional<EpRange> ep_range{};
  std::optional<int64_t> top_k{};
  std::optional<int64_t> num_experts{};
  std::optional<int64_t> rows{};  // of permuted outputs; absent: as many as the window has
  DType index_dtype = DType::kI32;
  bool check_indices = false;
  Engine engine{};
};

struct Sizes {
  int64_t num_tokens = 0, top_k = 0, hidden_size = 0;
  int64_t num_rows = 0;  // of the permuted tensors
  EpRange window{};      // of global rows, also where the command line names none
  DType dtype{};         // of the tokens
  // 2^63 - 1 where there would be more: no plan takes that many.
  int64_t num_slots() const {
    int64_t slots = 0;
    return __builtin_mul_overflow(num_tokens, top_k, &slots) ? INT64_MAX : slots;
  }
};

struct OutputSpec {
  std::string name;
  TensorDesc desc;
};

struct Planned {
  Sizes sizes;
  std::vector<OutputSpec> outputs;
  std::string kernel;
  std::string kernel_notes;  // a line for each kernel: what it said of the case
  size_t workspace_bytes = 0;
  // Addresses in the order of `outputs`.
  std::function<BoundCall(std::span<std::byte* const>)> bind;
};

struct Input {
  const char* name;
  bool required;
  const char* shape;  // "[T, K] or [T]"
};

struct Operator {
  const char* verb;   // "permute-grad"
  const char* title;  // one line
  std::vector<Input> inputs;
  std::vector<const char*> outputs;
  // The operands must outlive what is bound. Throws InvalidArgument and UsageError.
  Planned (*plan)(const Operands&, const Settings&);

  // Whether it makes rows, as many as one may wish.
  bool makes_rows() const { return std::string_view(outputs[0]).starts_with("permuted_"); }
};

const std::vector<Operator>& all_operators();
const Operator& find_operator(const std::string& verb);

// The required or optional operand of a name.
const Operand& required(const Operands& operands, const char* name);
std::optional<TensorDesc> desc_of(const Operands& operands, const char* name);
const std::byte* data_of(const Operands& operands, const char* name);

// The second size of probs or indices, or --top-k. Throws UsageError where there is neither.
int64_t top_k_of(const Operands& operands, const Settings& settings);
// Throws UsageError where --top-k is another than that of a tensor.
void check_top_k(const Settings& settings, int64_t top_k, const char* name);

// The sizes of an operator that brings rows back to their tokens; `rows` names the operand.
Sizes sizes_from_rows(const Operands& operands, const Settings& settings, const char* rows);
// The window of one that makes rows, from its other sizes.
EpRange window_of(const Settings& settings, const Sizes& sizes);

Planned plan_permute(const Operands& operands, const Settings& settings);
Planned plan_permute_grad(const Operands& operands, const Settings& settings);
Planned plan_unpermute(const Operands& operands, const Settings& settings);
Planned plan_unpermute_grad(const Operands& operands, const Settings& settings);

}  // namespace moe::tools
