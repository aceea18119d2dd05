// Cases of UnpermuteWithEpGrad, with the gradient of the probs, over shapes.json: time, bytes,
// and the share of the floor. scripts/bench --op unpermute_with_ep_grad runs this and prints a
// table.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "problems.h"
#include "unpermute_data.h"
#include "values.h"

namespace moe::bench {
namespace {

class UnpermuteGradProblem final : public OpProblem {
 public:
  UnpermuteGradProblem(const Case& c, Memory& memory)
      : data_(c, memory),
        grad_(memory.tokens.at_least(c.num_tokens * c.row_bytes())),
        rows_grad_(memory.permuted_tokens.at_least(output_bytes())),
        probs_grad_(memory.probs_grad.at_least(data_.num_slots() * UnpermuteData::kProbBytes)) {}

  BoundCall bind() const override {
    return plan().bind(
        {grad_, data_.indices(), data_.rows(), data_.probs(), rows_grad_, probs_grad_});
  }
  std::string kernel_name() const override { return plan().kernel_name(); }
  std::vector<Transfer> transfers() const override;
  const std::byte* output() const override { return rows_grad_; }
  int64_t output_bytes() const override { return data_.num_rows() * c().row_bytes(); }
  void check(const BoundCall& call) const override;

 private:
  const Case& c() const { return data_.the_case(); }
  UnpermuteWithEpGrad plan() const {
    return UnpermuteWithEpGrad::plan({.unpermuted_tokens_grad = TensorDesc::contiguous(
                                          c().dtype, {c().num_tokens, c().hidden_size}),
                                      .sorted_indices = data_.indices_desc(),
                                      .permuted_tokens = data_.rows_desc(),
                                      .probs = data_.probs_desc(),
                                      .top_k = c().top_k,
                                      .ep_range = data_.window(),
                                      .permuted_tokens_grad = TensorDesc::contiguous(
                                          c().dtype, {data_.num_rows(), c().hidden_size}),
                                      .probs_grad = data_.probs_desc()});
  }
  double element(const std::byte* tensor, int64_t row, int64_t h) const {
    return to_double(c().dtype, tensor + (row * c().hidden_size + h) * dtype_bytes(c().dtype));
  }
  void check_slot(int64_t slot) const;

  UnpermuteData data_;
  std::byte *grad_, *rows_grad_, *probs_grad_;
};

// Each row of the window is read once and written once, and so is read each token that has one.
std::vector<Transfer> UnpermuteGradProblem::transfers() const {
  constexpr int64_t kProbBytes = UnpermuteData::kProbBytes;
  return {
      {data_.rows(), data_.num_rows() * c().row_bytes(), rows_grad_, output_bytes()},
      {grad_, data_.num_tokens_with_rows() * c().row_bytes(), nullptr, 0},
      {data_.indices(), data_.num_slots() * 4, nullptr, 0},
      {data_.probs(), data_.num_slots() * kProbBytes, probs_grad_, data_.num_slots() * kProbBytes}};
}

void UnpermuteGradProblem::check_slot(int64_t slot) const {
  const int64_t row = data_.row_of(slot), token = slot / c().top_k;
  const double got = to_double(DType::kF32, probs_grad_ + slot * UnpermuteData::kProbBytes);
  const std::string name = "probs_grad at slot " + std::to_string(slot);
  if (row < 0) return expect_close(name, got, 0, 0);
  double sum = 0, magnitude = 0;
  for (int64_t h = 0; h < c().hidden_size; ++h) {
    const double grad = element(grad_, token, h), product = data_.value(row, h) * grad;
    sum += product;
    magnitude += std::abs(product);
    const double want = grad * data_.prob(slot);
    expect_close("row " + std::to_string(row), element(rows_grad_, row, h), want,
                 (half_unit(c().dtype) + 0x1p-23) * std::abs(want));
  }
  // Each partial sum has an error for each of its elements, and the tree has six steps.
  const double steps = static_cast<double>(c().hidden_size) / 64 + 8;
  expect_close(name, got, sum, steps * 0x1p-24 * magnitude);
}

// 64 slots spread over all.
void UnpermuteGradProblem::check(const BoundCall& call) const {
  std::memset(rows_grad_, 0xFF, static_cast<size_t>(output_bytes()));
  std::memset(probs_grad_, 0xFF,
              static_cast<size_t>(data_.num_slots() * UnpermuteData::kProbBytes));
  std::vector<std::byte> workspace(call.workspace_bytes());
  call.run(workspace.data());
  const int64_t step = std::max<int64_t>(1, data_.num_slots() / 64);
  for (int64_t slot = 0; slot < data_.num_slots(); slot += step) check_slot(slot);
}

}  // namespace

std::unique_ptr<OpProblem> unpermute_with_ep_grad_problem(const Case& c, Memory& memory) {
  return std::make_unique<UnpermuteGradProblem>(c, memory);
}

}  // namespace moe::bench
