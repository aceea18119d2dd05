#include "ops/unpermute_case.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <ostream>

#include "ref/routing.h"

namespace test {
namespace {

using moe::DType;
using moe::TensorDesc;

TensorDesc described(DType dtype, int64_t rows, int64_t width, const Layout& layout) {
  return TensorDesc::strided(dtype, {rows, width}, {layout.stride, layout.inner_stride},
                             layout.offset);
}

// Rows of the window that several slots name: what they hold is not specified.
std::vector<int64_t> contested_rows(const UnpermuteCase& c, const moe::EpRange& window) {
  std::map<int64_t, int> named;
  for (const int64_t index : c.indices) {
    if (index >= window.begin && index < window.end) ++named[index - window.begin];
  }
  std::vector<int64_t> rows;
  for (const auto& [row, count] : named) {
    if (count > 1) rows.push_back(row);
  }
  return rows;
}

moe::EpRange grad_window(const UnpermuteCase& c) {
  const int64_t rows = c.rows < 0 ? c.num_slots() : std::min(c.rows, c.num_slots());
  return c.ep_range.value_or(moe::EpRange{0, rows});
}

void blank(std::vector<std::byte>& bytes, int64_t row, int64_t row_bytes) {
  std::fill_n(bytes.begin() + row * row_bytes, row_bytes, std::byte{0});
}

bool forward_takes(const std::string& kernel, const UnpermuteCase& c) {
  return kernel == "portable" ||
         ((c.permuted.inner_stride == 1 || c.hidden_size == 1) && c.top_k <= 1024);
}

bool grad_takes(const std::string& kernel, const UnpermuteCase& c) {
  if (kernel == "portable" || c.hidden_size == 1) return true;
  const bool reads_rows = c.probs_dtype && c.with_probs_grad;
  return c.grad.inner_stride == 1 && (!reads_rows || c.permuted.inner_stride == 1);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const UnpermuteCase& c) {
  out << moe::dtype_name(c.dtype) << " " << moe::dtype_name(c.index_dtype);
  if (c.probs_dtype) out << " probs " << moe::dtype_name(*c.probs_dtype);
  out << " T " << c.num_tokens << " K " << c.top_k << " H " << c.hidden_size;
  if (c.ep_range) out << " range [" << c.ep_range->begin << ", " << c.ep_range->end << ")";
  out << " rows " << c.rows << " permuted " << c.permuted << " grad " << c.grad << " probs "
      << c.probs << " index " << c.index << " out slack " << c.out_slack_bytes;
  return out << (c.with_probs_grad ? "" : " without probs_grad") << " zero probs " << c.zero_probs
             << " threads " << c.num_threads << " seed " << c.seed;
}

UnpermuteData::UnpermuteData(const UnpermuteCase& c) : case_(c) {
  const int64_t window = c.ep_range ? c.ep_range->end - c.ep_range->begin : c.num_slots();
  if (case_.rows < 0) case_.rows = window;
  memory_rows_ = c.ep_range ? window : case_.rows;
  args_.top_k = grad_args_.top_k = c.top_k;
  args_.ep_range = grad_args_.ep_range = c.ep_range;
  args_.check_indices = grad_args_.check_indices = c.check_indices;
  args_.out = TensorDesc::contiguous(c.dtype, {c.num_tokens, c.hidden_size});
  grad_args_.permuted_tokens_grad = TensorDesc::contiguous(c.dtype, {case_.rows, c.hidden_size});
  reference_.num_tokens = c.num_tokens;
  reference_.top_k = c.top_k;
  reference_.hidden_size = c.hidden_size;
  make_permuted();
  make_grad();
  make_indices();
  if (c.probs_dtype) make_probs();
}

ref::View UnpermuteData::fill(const GuardedBuffer& buffer, DType dtype, const Layout& layout,
                              int64_t rows, int64_t width, uint64_t seed) const {
  const ref::View view{buffer.data(), ref_type(dtype), layout.stride, layout.inner_stride,
                       layout.offset};
  ref::Random random(seed);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      store_bits(buffer.data(), view.at(i, j), moe::dtype_bytes(dtype),
                 random_bits(dtype, case_.values, random));
    }
  }
  return view;
}

void UnpermuteData::make_permuted() {
  const int64_t width = case_.hidden_size;
  Layout& layout = case_.permuted;
  if (layout.stride < 0) layout.stride = width * std::max<int64_t>(layout.inner_stride, 1);
  permuted_ = memory_of_rows(case_.dtype, layout, memory_rows_, case_.rows, width);
  args_.permuted_tokens = described(case_.dtype, case_.rows, width, layout);
  if (case_.probs_dtype && case_.with_probs_grad) {
    grad_args_.permuted_tokens = args_.permuted_tokens;
  }
  reference_.permuted_tokens =
      fill(*permuted_, case_.dtype, layout, memory_rows_, width, case_.seed);
}

void UnpermuteData::make_grad() {
  const int64_t width = case_.hidden_size;
  Layout& layout = case_.grad;
  if (layout.stride < 0) layout.stride = width * std::max<int64_t>(layout.inner_stride, 1);
  grad_ = std::make_unique<GuardedBuffer>(span_bytes(case_.dtype, layout, case_.num_tokens, width),
                                          layout.slack_bytes);
  grad_args_.unpermuted_tokens_grad = described(case_.dtype, case_.num_tokens, width, layout);
  reference_.unpermuted_tokens_grad =
      fill(*grad_, case_.dtype, layout, case_.num_tokens, width, case_.seed + 1);
}

void UnpermuteData::make_probs() {
  const DType dtype = *case_.probs_dtype;
  const int64_t bytes = moe::dtype_bytes(dtype);
  Layout& layout = case_.probs;
  if (layout.stride < 0) layout.stride = case_.top_k * std::max<int64_t>(layout.inner_stride, 1);
  probs_ = std::make_unique<GuardedBuffer>(span_bytes(dtype, layout, case_.num_tokens, case_.top_k),
                                           layout.slack_bytes);
  args_.probs = grad_args_.probs = described(dtype, case_.num_tokens, case_.top_k, layout);
  if (case_.with_probs_grad) {
    grad_args_.probs_grad = TensorDesc::contiguous(dtype, {case_.num_tokens, case_.top_k});
  }
  reference_.probs = fill(*probs_, dtype, layout, case_.num_tokens, case_.top_k, case_.seed + 2);
  ref::Random random(case_.seed + 3);
  for (int64_t slot = 0; case_.zero_probs > 0 && slot < case_.num_slots(); ++slot) {
    if (random.below(case_.zero_probs) > 0) continue;
    const uint64_t sign = random.below(2) ? uint64_t{1} << (8 * bytes - 1) : 0;
    store_bits(probs_->data(), reference_.probs.at(slot / case_.top_k, slot % case_.top_k), bytes,
               sign);
  }
}

void UnpermuteData::make_indices() {
  Layout& layout = case_.index;
  if (layout.stride < 0) layout.stride = 1;
  if (case_.indices.empty()) case_.indices = ref::permutation(case_.num_slots(), case_.seed + 4);
  const int64_t num_slots = case_.num_slots(), bytes = moe::dtype_bytes(case_.index_dtype);
  index_ = std::make_unique<GuardedBuffer>(span_bytes(case_.index_dtype, layout, num_slots, 1),
                                           layout.slack_bytes);
  args_.sorted_indices = grad_args_.sorted_indices =
      TensorDesc::strided(case_.index_dtype, {num_slots}, {layout.stride}, layout.offset);
  reference_.sorted_indices = {index_->data(), ref_type(case_.index_dtype), layout.stride, 1,
                               layout.offset};
  for (int64_t i = 0; i < num_slots; ++i) {
    store_bits(index_->data(), reference_.sorted_indices.at(i), bytes,
               static_cast<uint64_t>(case_.indices[static_cast<size_t>(i)]));
  }
}

moe::UnpermuteWithEp::Pointers UnpermuteData::inputs() const {
  return {permuted_->data(), index_->data(), probs_ ? probs_->data() : nullptr, nullptr};
}

moe::UnpermuteWithEpGrad::Pointers UnpermuteData::grad_inputs() const {
  return {.unpermuted_tokens_grad = grad_->data(),
          .sorted_indices = index_->data(),
          .permuted_tokens = permuted_->data(),
          .probs = probs_ ? probs_->data() : nullptr};
}

UnpermuteOutputs UnpermuteData::expected() const {
  ref::Unpermute forward = reference_, grad = reference_;
  const moe::EpRange window = grad_window(case_);
  forward.begin = grad.begin = window.begin;
  forward.end = case_.ep_range ? window.end : case_.rows;
  grad.end = window.end;
  return {ref::unpermuted(forward), ref::permuted_tokens_grad(grad, case_.rows),
          grad_args_.probs_grad ? ref::unpermute_probs_grad(grad) : std::vector<std::byte>{}};
}

std::vector<std::byte> UnpermuteData::run_forward(const moe::Engine& engine, int poison) const {
  const GuardedBuffer out(
      static_cast<size_t>(case_.num_tokens * case_.hidden_size * moe::dtype_bytes(case_.dtype)),
      case_.out_slack_bytes);
  out.fill(poison);
  auto pointers = inputs();
  pointers.out = out.data();
  const auto plan = moe::UnpermuteWithEp::plan(args_, engine);
  // Odd, because a workspace may have any alignment.
  const GuardedBuffer workspace(plan.workspace_bytes(), 1);
  plan.bind(pointers).run(workspace.size() > 0 ? workspace.data() : nullptr);
  EXPECT_TRUE(workspace.intact()) << "bytes around the workspace were written";
  return take(out, "out");
}

UnpermuteOutputs UnpermuteData::run_grad(const moe::Engine& engine, int poison) const {
  const int64_t probs_bytes =
      grad_args_.probs_grad ? moe::dtype_bytes(grad_args_.probs_grad->dtype) : 0;
  const GuardedBuffer rows(
      static_cast<size_t>(case_.rows * case_.hidden_size * moe::dtype_bytes(case_.dtype)),
      case_.out_slack_bytes);
  const GuardedBuffer probs(static_cast<size_t>(case_.num_slots() * probs_bytes),
                            case_.out_slack_bytes);
  rows.fill(poison);
  probs.fill(poison);
  auto pointers = grad_inputs();
  pointers.permuted_tokens_grad = rows.data();
  if (grad_args_.probs_grad) pointers.probs_grad = probs.data();
  const auto plan = moe::UnpermuteWithEpGrad::plan(grad_args_, engine);
  const GuardedBuffer workspace(plan.workspace_bytes(), 1);
  plan.bind(pointers).run(workspace.size() > 0 ? workspace.data() : nullptr);
  EXPECT_TRUE(workspace.intact()) << "bytes around the workspace were written";
  return {{}, take(rows, "permuted_tokens_grad"), take(probs, "probs_grad")};
}

void expect_same(const UnpermuteCase& c, const UnpermuteOutputs& got,
                 const UnpermuteOutputs& want) {
  UnpermuteOutputs a = got, b = want;
  const int64_t row_bytes = c.hidden_size * moe::dtype_bytes(c.dtype);
  for (const int64_t row : contested_rows(c, grad_window(c))) {
    blank(a.rows, row, row_bytes);
    blank(b.rows, row, row_bytes);
  }
  expect_same_values("permuted_tokens_grad", c.dtype, a.rows, b.rows);
  if (c.probs_dtype) expect_same_values("probs_grad", *c.probs_dtype, a.probs, b.probs);
}

void expect_matches_oracle(const UnpermuteCase& c) {
  const UnpermuteData data(c);
  const UnpermuteOutputs want = data.expected();
  for (const std::string& kernel : moe::UnpermuteWithEp::kernel_names()) {
    SCOPED_TRACE(testing::Message() << "kernel " << kernel << ": " << c);
    const moe::Engine engine{.num_threads = c.num_threads, .kernel = kernel};
    if (!forward_takes(kernel, c)) {
      EXPECT_THROW(moe::UnpermuteWithEp::plan(data.args(), engine), moe::InvalidArgument);
      continue;
    }
    for (const int poison : {0xff, 0x5a}) {
      expect_same_values("out", c.dtype, data.run_forward(engine, poison), want.tokens);
    }
  }
  for (const std::string& kernel : moe::UnpermuteWithEpGrad::kernel_names()) {
    SCOPED_TRACE(testing::Message() << "gradient, kernel " << kernel << ": " << c);
    const moe::Engine engine{.num_threads = c.num_threads, .kernel = kernel};
    if (!grad_takes(kernel, c)) {
      EXPECT_THROW(moe::UnpermuteWithEpGrad::plan(data.grad_args(), engine), moe::InvalidArgument);
      continue;
    }
    for (const int poison : {0xff, 0x5a}) {
      expect_same(c, data.run_grad(engine, poison), want);
    }
  }
}

}  // namespace test
