// Cases of UnpermuteWithEp over shapes.json: time, bytes, and the share of the floor.
// scripts/bench --op unpermute_with_ep runs this and prints a table.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "problems.h"
#include "unpermute_data.h"
#include "values.h"

namespace moe::bench {
namespace {

class UnpermuteProblem final : public OpProblem {
 public:
  UnpermuteProblem(const Case& c, Memory& memory)
      : data_(c, memory), out_(memory.tokens_grad.at_least(output_bytes())) {}

  BoundCall bind() const override {
    return plan().bind({data_.rows(), data_.indices(), data_.probs(), out_});
  }
  std::string kernel_name() const override { return plan().kernel_name(); }
  std::vector<Transfer> transfers() const override;
  const std::byte* output() const override { return out_; }
  int64_t output_bytes() const override { return c().num_tokens * c().row_bytes(); }
  void check(const BoundCall& call) const override;

 private:
  const Case& c() const { return data_.the_case(); }
  UnpermuteWithEp plan() const {
    return UnpermuteWithEp::plan(
        {.permuted_tokens = data_.rows_desc(),
         .sorted_indices = data_.indices_desc(),
         .probs = data_.probs_desc(),
         .top_k = c().top_k,
         .ep_range = data_.window(),
         .out = TensorDesc::contiguous(c().dtype, {c().num_tokens, c().hidden_size})});
  }
  void check_element(int64_t token, int64_t h) const;

  UnpermuteData data_;
  std::byte* out_;
};

// Each row of the window is read once (every one of them is named by exactly one slot).
std::vector<Transfer> UnpermuteProblem::transfers() const {
  return {{data_.rows(), data_.num_rows() * c().row_bytes(), out_, output_bytes()},
          {data_.indices(), data_.num_slots() * 4, nullptr, 0},
          {data_.probs(), data_.num_slots() * UnpermuteData::kProbBytes, nullptr, 0}};
}

void UnpermuteProblem::check_element(int64_t token, int64_t h) const {
  double sum = 0, magnitude = 0;
  for (int64_t slot = token * c().top_k; slot < (token + 1) * c().top_k; ++slot) {
    if (data_.row_of(slot) < 0) continue;
    const double product = data_.value(data_.row_of(slot), h) * data_.prob(slot);
    sum += product;
    magnitude += std::abs(product);
  }
  const std::byte* at = out_ + (token * c().hidden_size + h) * dtype_bytes(c().dtype);
  expect_close("out[" + std::to_string(token) + ", " + std::to_string(h) + "]",
               to_double(c().dtype, at), sum,
               half_unit(c().dtype) * std::abs(sum) + 0x1p-22 * magnitude);
}

// Every element of 64 tokens spread over all.
void UnpermuteProblem::check(const BoundCall& call) const {
  std::memset(out_, 0xFF, static_cast<size_t>(output_bytes()));
  std::vector<std::byte> workspace(call.workspace_bytes());
  call.run(workspace.data());
  const int64_t step = std::max<int64_t>(1, c().num_tokens / 64);
  for (int64_t token = 0; token < c().num_tokens; token += step) {
    for (int64_t h = 0; h < c().hidden_size; ++h) check_element(token, h);
  }
}

}  // namespace

std::unique_ptr<OpProblem> unpermute_with_ep_problem(const Case& c, Memory& memory) {
  return std::make_unique<UnpermuteProblem>(c, memory);
}

}  // namespace moe::bench
