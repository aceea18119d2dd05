#include "problem.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "problems.h"
#include "values.h"

namespace moe::bench {
namespace {

// Router probabilities are float32 in every model of shapes.json.
constexpr int64_t kProbBytes = 4;

}  // namespace

Problem::Problem(const Case& the_case, Memory& memory) : the_case_(the_case) {
  const Case& c = the_case_;
  const Routing routing = routing_of(c);
  window_ = window_of_rank(routing, c.rank, c.num_ranks);
  const int64_t num_slots = c.num_tokens * c.top_k,
                row_stride_bytes = c.row_bytes() + c.row_gap_bytes;

  args_.permuted_tokens_grad = TensorDesc::strided(c.dtype, {num_rows(), c.hidden_size},
                                                   {row_stride_bytes / dtype_bytes(c.dtype), 1});
  args_.sorted_indices = TensorDesc::contiguous(DType::kI32, {num_slots});
  args_.permuted_probs_grad = TensorDesc::contiguous(DType::kF32, {num_rows()});
  args_.top_k = c.top_k;
  args_.ep_range = window_;
  args_.tokens_grad = TensorDesc::contiguous(c.dtype, {c.num_tokens, c.hidden_size});
  args_.probs_grad = TensorDesc::contiguous(DType::kF32, {c.num_tokens, c.top_k});

  rows_ = memory.rows.at_least(num_rows() * row_stride_bytes);
  probs_ = memory.probs.at_least(num_rows() * kProbBytes);
  indices_ = memory.indices.at_least(num_slots * 4);
  tokens_grad_ = memory.tokens_grad.at_least(output_bytes());
  probs_grad_ = memory.probs_grad.at_least(num_slots * kProbBytes);
  std::memcpy(indices_, routing.sorted_indices.data(), static_cast<size_t>(num_slots) * 4);
}

PermuteWithEpGrad::Pointers Problem::pointers() const {
  return {rows_, indices_, probs_, tokens_grad_, probs_grad_};
}

std::vector<Transfer> Problem::transfers() const {
  const int64_t num_slots = the_case_.num_tokens * the_case_.top_k;
  return {{rows_, num_rows() * the_case_.row_bytes(), tokens_grad_, output_bytes()},
          {indices_, num_slots * 4, nullptr, 0},
          {probs_, num_rows() * kProbBytes, probs_grad_, num_slots * kProbBytes}};
}

double Problem::element(int64_t row, int64_t h) const {
  const int64_t offset = row * (the_case_.row_bytes() + the_case_.row_gap_bytes);
  return to_double(the_case_.dtype, rows_ + offset + h * dtype_bytes(the_case_.dtype));
}

void Problem::check_token(int64_t token) const {
  const Case& c = the_case_;
  const auto* indices = reinterpret_cast<const int32_t*>(indices_) + token * c.top_k;
  for (int64_t h = 0; h < c.hidden_size; ++h) {
    double sum = 0, magnitude = 0;
    for (int64_t k = 0; k < c.top_k; ++k) {
      if (indices[k] < window_.begin || indices[k] >= window_.end) continue;
      const double value = element(indices[k] - window_.begin, h);
      sum += value;
      magnitude += std::abs(value);
    }
    const double got =
        to_double(c.dtype, tokens_grad_ + (token * c.hidden_size + h) * dtype_bytes(c.dtype));
    // Each of top_k additions rounds in float32.
    const double additions = static_cast<double>(c.top_k) * 0x1p-24 * magnitude;
    const double allowed = half_unit(c.dtype) * std::abs(sum) + additions;
    if (!(std::abs(got - sum) <= allowed)) {
      throw std::runtime_error("wrong answer: tokens_grad[" + std::to_string(token) + ", " +
                               std::to_string(h) + "] is " + std::to_string(got) +
                               ", but the sum is " + std::to_string(sum));
    }
  }
}

void Problem::check_probs() const {
  const auto* indices = reinterpret_cast<const int32_t*>(indices_);
  for (int64_t slot = 0; slot < the_case_.num_tokens * the_case_.top_k; ++slot) {
    const bool inside = indices[slot] >= window_.begin && indices[slot] < window_.end;
    const uint32_t zero = 0;
    const void* want =
        inside ? static_cast<const void*>(probs_ + (indices[slot] - window_.begin) * kProbBytes)
               : &zero;
    if (std::memcmp(want, probs_grad_ + slot * kProbBytes, kProbBytes) != 0) {
      throw std::runtime_error("wrong answer: probs_grad at slot " + std::to_string(slot));
    }
  }
}

void Problem::check(const BoundCall& call) const {
  const int64_t num_tokens = the_case_.num_tokens;
  std::memset(tokens_grad_, 0xFF, static_cast<size_t>(output_bytes()));
  std::memset(probs_grad_, 0xFF, static_cast<size_t>(num_tokens * the_case_.top_k * kProbBytes));
  std::vector<std::byte> workspace(call.workspace_bytes());
  call.run(workspace.data());
  const int64_t num_checked = std::min<int64_t>(num_tokens, 64);
  for (int64_t i = 0; i < num_checked; ++i) {
    check_token(num_checked == 1 ? 0 : i * (num_tokens - 1) / (num_checked - 1));
  }
  check_probs();
}

std::unique_ptr<OpProblem> permute_with_ep_grad_problem(const Case& c, Memory& memory) {
  return std::make_unique<Problem>(c, memory);
}

}  // namespace moe::bench
