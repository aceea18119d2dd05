// Cases of PermuteWithEp over shapes.json: time, bytes, and the share of the floor. The index
// stage is timed apart. scripts/bench --op permute_with_ep runs this and prints a table.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "problems.h"
#include "routing.h"

namespace moe::bench {
namespace {

// Router probabilities are float32 in every model of shapes.json.
constexpr int64_t kProbBytes = 4;

class PermuteProblem final : public OpProblem {
 public:
  PermuteProblem(const Case& c, Memory& memory);

  BoundCall bind() const override { return plan().bind(pointers_); }
  std::string kernel_name() const override { return plan().kernel_name(); }
  std::vector<Transfer> transfers() const override;
  const std::byte* output() const override { return permuted_tokens_; }
  int64_t output_bytes() const override { return num_rows() * case_.row_bytes(); }
  void check(const BoundCall& call) const override;
  BoundCall part_apart() const override;

 private:
  PermuteWithEp plan() const { return PermuteWithEp::plan(args_); }
  int64_t num_rows() const { return window_.end - window_.begin; }
  int64_t num_slots() const { return case_.num_tokens * case_.top_k; }
  bool has_row(int64_t token) const;
  void check_slot(int64_t slot) const;

  Case case_;
  Routing routing_;
  EpRange window_;
  PermuteWithEp::Args args_;
  PermuteWithEp::Pointers pointers_;
  std::byte *tokens_, *probs_, *permuted_tokens_, *permuted_probs_, *sorted_indices_;
  std::byte* indices_;
};

PermuteProblem::PermuteProblem(const Case& c, Memory& memory)
    : case_(c), routing_(routing_of(c)), window_(window_of_rank(routing_, c.rank, c.num_ranks)) {
  const int64_t row_stride_bytes = c.row_bytes() + c.row_gap_bytes;
  args_.tokens = TensorDesc::strided(c.dtype, {c.num_tokens, c.hidden_size},
                                     {row_stride_bytes / dtype_bytes(c.dtype), 1});
  args_.indices = TensorDesc::contiguous(DType::kI32, {c.num_tokens, c.top_k});
  args_.probs = TensorDesc::contiguous(DType::kF32, {c.num_tokens, c.top_k});
  args_.ep_range = window_;
  args_.num_experts = c.num_experts;
  args_.permuted_tokens = TensorDesc::contiguous(c.dtype, {num_rows(), c.hidden_size});
  args_.sorted_indices = TensorDesc::contiguous(DType::kI32, {num_slots()});
  args_.permuted_probs = TensorDesc::contiguous(DType::kF32, {num_rows()});

  tokens_ = memory.tokens.at_least(c.num_tokens * row_stride_bytes);
  indices_ = memory.indices.at_least(num_slots() * 4);
  probs_ = memory.probs.at_least(num_slots() * kProbBytes);
  permuted_tokens_ = memory.permuted_tokens.at_least(output_bytes());
  sorted_indices_ = memory.sorted_indices.at_least(num_slots() * 4);
  permuted_probs_ = memory.permuted_probs.at_least(num_rows() * kProbBytes);
  std::memcpy(indices_, routing_.experts.data(), static_cast<size_t>(num_slots()) * 4);
  pointers_ = {.tokens = tokens_,
               .indices = indices_,
               .probs = probs_,
               .permuted_tokens = permuted_tokens_,
               .sorted_indices = sorted_indices_,
               .permuted_probs = permuted_probs_};
}

bool PermuteProblem::has_row(int64_t token) const {
  const auto first = routing_.sorted_indices.begin() + token * case_.top_k;
  return std::any_of(first, first + case_.top_k,
                     [&](int32_t row) { return row >= window_.begin && row < window_.end; });
}

// Tokens that have a row in the window are read once, each row is written once. The tokens' bytes
// stand together here: a floor is a plain pass.
std::vector<Transfer> PermuteProblem::transfers() const {
  int64_t tokens = 0;
  for (int64_t token = 0; token < case_.num_tokens; ++token) tokens += has_row(token);
  return {{tokens_, tokens * case_.row_bytes(), permuted_tokens_, output_bytes()},
          {sorted_indices_, num_slots() * 4, nullptr, 0},
          {probs_, num_slots() * kProbBytes, permuted_probs_, num_rows() * kProbBytes}};
}

BoundCall PermuteProblem::part_apart() const {
  return SortByExpert::plan({.indices = args_.indices,
                             .num_experts = args_.num_experts,
                             .sorted_indices = args_.sorted_indices})
      .bind({.indices = indices_, .sorted_indices = sorted_indices_});
}

void PermuteProblem::check_slot(int64_t slot) const {
  const int64_t row = routing_.sorted_indices[static_cast<size_t>(slot)];
  if (row < window_.begin || row >= window_.end) return;
  const int64_t to = row - window_.begin, token = slot / case_.top_k;
  const std::byte* from = tokens_ + token * (case_.row_bytes() + case_.row_gap_bytes);
  if (std::memcmp(permuted_tokens_ + to * case_.row_bytes(), from,
                  static_cast<size_t>(case_.row_bytes())) != 0 ||
      std::memcmp(permuted_probs_ + to * kProbBytes, probs_ + slot * kProbBytes, kProbBytes) != 0) {
    throw std::runtime_error("wrong answer: row " + std::to_string(to));
  }
}

void PermuteProblem::check(const BoundCall& call) const {
  std::memset(permuted_tokens_, 0xFF, static_cast<size_t>(output_bytes()));
  std::memset(permuted_probs_, 0xFF, static_cast<size_t>(num_rows() * kProbBytes));
  std::vector<std::byte> workspace(call.workspace_bytes());
  call.run(workspace.data());
  if (std::memcmp(sorted_indices_, routing_.sorted_indices.data(),
                  static_cast<size_t>(num_slots()) * 4) != 0) {
    throw std::runtime_error("wrong answer: sorted_indices");
  }
  for (int64_t slot = 0; slot < num_slots(); ++slot) check_slot(slot);
}

}  // namespace

std::unique_ptr<OpProblem> permute_with_ep_problem(const Case& c, Memory& memory) {
  return std::make_unique<PermuteProblem>(c, memory);
}

}  // namespace moe::bench
