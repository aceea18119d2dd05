#include "ops/grad_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ostream>

#include "ref/routing.h"

namespace test {

using moe::DType;
using moe::TensorDesc;

std::ostream& operator<<(std::ostream& out, const GradCase& c) {
  out << moe::dtype_name(c.dtype) << " " << moe::dtype_name(c.index_dtype);
  if (c.probs_dtype) out << " probs " << moe::dtype_name(*c.probs_dtype);
  out << " T " << c.num_tokens << " K " << c.top_k << " H " << c.hidden_size;
  if (c.ep_range) out << " range [" << c.ep_range->begin << ", " << c.ep_range->end << ")";
  out << " rows " << c.rows << " probs rows " << c.probs_rows << " tokens " << c.tokens;
  out << " probs " << c.probs << " index " << c.index << " out slack " << c.out_slack_bytes;
  return out << " threads " << c.num_threads << " seed " << c.seed;
}

GradProblem::GradProblem(const GradCase& c) : case_(c) {
  const int64_t all = c.ep_range ? c.ep_range->end - c.ep_range->begin : c.num_slots();
  if (case_.rows < 0) case_.rows = all;
  window_rows_ = c.ep_range ? all : case_.rows;
  if (case_.probs_rows < 0) case_.probs_rows = window_rows_;
  args_.top_k = c.top_k;
  args_.ep_range = c.ep_range;
  args_.check_indices = c.check_indices;
  args_.tokens_grad = TensorDesc::contiguous(c.dtype, {c.num_tokens, c.hidden_size});
  reference_.num_tokens = c.num_tokens;
  reference_.top_k = c.top_k;
  reference_.hidden_size = c.hidden_size;
  reference_.begin = c.ep_range ? c.ep_range->begin : 0;
  reference_.end = c.ep_range ? c.ep_range->end : case_.rows;
  make_tokens();
  make_indices();
  if (c.probs_dtype) make_probs();
}

void GradProblem::make_tokens() {
  const int64_t width = case_.hidden_size, bytes = moe::dtype_bytes(case_.dtype);
  Layout& layout = case_.tokens;
  if (layout.stride < 0) layout.stride = width * std::max<int64_t>(layout.inner_stride, 1);
  tokens_ = memory_of_rows(case_.dtype, layout, window_rows_, case_.rows, width);
  args_.permuted_tokens_grad = TensorDesc::strided(
      case_.dtype, {case_.rows, width}, {layout.stride, layout.inner_stride}, layout.offset);
  inputs_.permuted_tokens_grad = tokens_->data();
  reference_.permuted_tokens_grad = {tokens_->data(), ref_type(case_.dtype), layout.stride,
                                     layout.inner_stride, layout.offset};
  ref::Random random(case_.seed);
  for (int64_t row = 0; row < window_rows_; ++row) {
    for (int64_t h = 0; h < width; ++h) {
      store_bits(tokens_->data(), reference_.permuted_tokens_grad.at(row, h), bytes,
                 random_bits(case_.dtype, case_.values, random));
    }
  }
}

void GradProblem::make_probs() {
  const DType dtype = *case_.probs_dtype;
  Layout& layout = case_.probs;
  if (layout.stride < 0) layout.stride = 1;
  probs_ = memory_of_rows(dtype, layout, window_rows_, case_.probs_rows, 1);
  args_.permuted_probs_grad =
      TensorDesc::strided(dtype, {case_.probs_rows}, {layout.stride}, layout.offset);
  args_.probs_grad = TensorDesc::contiguous(dtype, {case_.num_tokens, case_.top_k});
  inputs_.permuted_probs_grad = probs_->data();
  reference_.permuted_probs_grad = {probs_->data(), ref_type(dtype), layout.stride, 1,
                                    layout.offset};
  ref::Random random(case_.seed + 1);
  for (int64_t row = 0; row < window_rows_; ++row) {
    store_bits(probs_->data(), reference_.permuted_probs_grad.at(row), moe::dtype_bytes(dtype),
               random_bits(dtype, case_.values, random));
  }
}

void GradProblem::make_indices() {
  Layout& layout = case_.index;
  if (layout.stride < 0) layout.stride = 1;
  if (case_.indices.empty()) case_.indices = ref::permutation(case_.num_slots(), case_.seed + 2);
  const int64_t num_slots = case_.num_slots(), bytes = moe::dtype_bytes(case_.index_dtype);
  index_ = std::make_unique<GuardedBuffer>(span_bytes(case_.index_dtype, layout, num_slots, 1),
                                           layout.slack_bytes);
  args_.sorted_indices =
      TensorDesc::strided(case_.index_dtype, {num_slots}, {layout.stride}, layout.offset);
  inputs_.sorted_indices = index_->data();
  reference_.sorted_indices = {index_->data(), ref_type(case_.index_dtype), layout.stride, 1,
                               layout.offset};
  for (int64_t i = 0; i < num_slots; ++i) {
    store_bits(index_->data(), reference_.sorted_indices.at(i), bytes,
               static_cast<uint64_t>(case_.indices[static_cast<size_t>(i)]));
  }
}

Outputs GradProblem::expected() const {
  return {ref::tokens_grad(reference_),
          case_.probs_dtype ? ref::probs_grad(reference_) : std::vector<std::byte>{}};
}

Outputs GradProblem::run(const moe::Engine& engine, int poison) const {
  const int64_t probs_bytes = args_.probs_grad ? moe::dtype_bytes(args_.probs_grad->dtype) : 0;
  const GuardedBuffer tokens(
      static_cast<size_t>(case_.num_tokens * case_.hidden_size * moe::dtype_bytes(case_.dtype)),
      case_.out_slack_bytes);
  const GuardedBuffer probs(static_cast<size_t>(case_.num_slots() * probs_bytes),
                            case_.out_slack_bytes);
  tokens.fill(poison);
  probs.fill(poison);
  moe::PermuteWithEpGrad::Pointers pointers = inputs_;
  pointers.tokens_grad = tokens.data();
  if (args_.probs_grad) pointers.probs_grad = probs.data();
  const auto plan = moe::PermuteWithEpGrad::plan(args_, engine);
  // Odd, because a workspace may have any alignment.
  const GuardedBuffer workspace(plan.workspace_bytes(), 1);
  plan.bind(pointers).run(workspace.size() > 0 ? workspace.data() : nullptr);
  EXPECT_TRUE(workspace.intact()) << "bytes around the workspace were written";
  return {take(tokens, "tokens_grad"), take(probs, "probs_grad")};
}

void expect_same(const GradCase& c, const Outputs& got, const Outputs& want) {
  expect_same_values("tokens_grad", c.dtype, got.tokens, want.tokens);
  const auto [a, b] =
      std::mismatch(got.probs.begin(), got.probs.end(), want.probs.begin(), want.probs.end());
  EXPECT_TRUE(got.probs == want.probs)
      << "probs_grad differs first at byte " << a - got.probs.begin();
}

bool takes(const std::string& kernel, const GradCase& c) {
  return kernel == "portable" ||
         ((c.tokens.inner_stride == 1 || c.hidden_size == 1) && c.top_k <= 1024);
}

void expect_matches_oracle(const GradCase& c) {
  const GradProblem problem(c);
  const Outputs want = problem.expected();
  for (const std::string& kernel : moe::PermuteWithEpGrad::kernel_names()) {
    SCOPED_TRACE(testing::Message() << "kernel " << kernel << ": " << c);
    if (!takes(kernel, c)) {
      EXPECT_THROW(moe::PermuteWithEpGrad::plan(problem.args(), {.kernel = kernel}),
                   moe::InvalidArgument);
      continue;
    }
    for (const int poison : {0xff, 0x5a}) {
      expect_same(c, problem.run({.num_threads = c.num_threads, .kernel = kernel}, poison), want);
    }
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace test
