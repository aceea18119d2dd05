#include "ops/permute_case.h"

#include <algorithm>
#include <ostream>

#include "ref/routing.h"

namespace test {
namespace {

using moe::DType;
using moe::TensorDesc;

std::vector<std::byte> as_dtype(const std::vector<int64_t>& values, DType dtype) {
  const int64_t bytes = moe::dtype_bytes(dtype);
  std::vector<std::byte> out(values.size() * static_cast<size_t>(bytes));
  for (size_t i = 0; i < values.size(); ++i) {
    store_bits(out.data(), static_cast<int64_t>(i), bytes, static_cast<uint64_t>(values[i]));
  }
  return out;
}

std::vector<int64_t> random_experts(int64_t count, uint64_t seed) {
  ref::Random random(seed);
  std::vector<int64_t> experts(static_cast<size_t>(count));
  for (int64_t& e : experts) e = random.below(9) - 1;
  return experts;
}

// A guarded output of a description, if there is one.
class Output {
 public:
  Output(const TensorDesc* desc, size_t slack, int poison)
      : buffer_(desc ? bytes_of(*desc) : 0, slack), present_(desc != nullptr) {
    buffer_.fill(poison);
  }
  void* data() const { return present_ ? buffer_.data() : nullptr; }
  std::vector<std::byte> bytes(const char* name) const { return take(buffer_, name); }

 private:
  static size_t bytes_of(const TensorDesc& desc) {
    int64_t bytes = moe::dtype_bytes(desc.dtype);
    for (int dim = 0; dim < desc.num_dims; ++dim) bytes *= desc.shape[dim];
    return static_cast<size_t>(bytes);
  }

  GuardedBuffer buffer_;
  bool present_;
};

const TensorDesc* given(const std::optional<TensorDesc>& desc) { return desc ? &*desc : nullptr; }

}  // namespace

std::ostream& operator<<(std::ostream& out, const PermuteCase& c) {
  out << moe::dtype_name(c.dtype) << " " << moe::dtype_name(c.index_dtype) << " to "
      << moe::dtype_name(c.sorted_dtype);
  if (c.probs_dtype) out << " probs " << moe::dtype_name(*c.probs_dtype);
  out << " T " << c.num_tokens << " K " << c.top_k << " H " << c.hidden_size;
  if (c.num_experts) out << " E " << *c.num_experts;
  if (c.ep_range) out << " range [" << c.ep_range->begin << ", " << c.ep_range->end << ")";
  out << " rows " << c.rows << " probs rows " << c.probs_rows << " tokens " << c.tokens;
  out << " probs " << c.probs << " index " << c.index << " out slack " << c.out_slack_bytes;
  return out << (c.flat ? " flat" : "") << " threads " << c.num_threads << " seed " << c.seed;
}

PermuteProblem::Input PermuteProblem::make(DType dtype, Layout layout, int64_t rows, int64_t width,
                                           bool flat) {
  if (layout.stride < 0) layout.stride = width * std::max<int64_t>(layout.inner_stride, 1);
  Input input{
      std::make_unique<GuardedBuffer>(span_bytes(dtype, layout, rows, width), layout.slack_bytes),
      TensorDesc::strided(dtype, {rows, width}, {layout.stride, layout.inner_stride},
                          layout.offset),
      {}};
  if (flat) input.desc = TensorDesc::strided(dtype, {rows}, {layout.stride}, layout.offset);
  input.view = {input.buffer->data(), ref_type(dtype), layout.stride, layout.inner_stride,
                layout.offset};
  return input;
}

PermuteProblem::PermuteProblem(const PermuteCase& c) : case_(c) {
  if (case_.experts.empty()) case_.experts = random_experts(c.num_slots(), c.seed + 2);
  ref::Random random(c.seed);
  tokens_ = make(c.dtype, c.tokens, c.num_tokens, c.hidden_size, false);
  index_ = make(c.index_dtype, c.index, c.num_tokens, c.top_k, c.flat);
  const auto fill = [&](const Input& in, DType dtype, int64_t width, auto value) {
    for (int64_t i = 0; i < c.num_tokens * width; ++i) {
      store_bits(in.buffer->data(), in.view.at(i / width, i % width), moe::dtype_bytes(dtype),
                 value(i));
    }
  };
  const auto any_bits = [&](DType dtype) {
    return [&random, dtype](int64_t) { return random_bits(dtype, Values::kAnyBits, random); };
  };
  fill(tokens_, c.dtype, c.hidden_size, any_bits(c.dtype));
  fill(index_, c.index_dtype, c.top_k,
       [&](int64_t i) { return static_cast<uint64_t>(case_.experts[static_cast<size_t>(i)]); });
  if (c.probs_dtype) {
    probs_ = make(*c.probs_dtype, c.probs, c.num_tokens, c.top_k, c.flat);
    fill(probs_, *c.probs_dtype, c.top_k, any_bits(*c.probs_dtype));
    args_.probs = probs_.desc;
    inputs_.probs = probs_.buffer->data();
  }
  make_outputs();
}

void PermuteProblem::make_outputs() {
  const PermuteCase& c = case_;
  if (case_.rows < 0) case_.rows = c.ep_range ? c.ep_range->end - c.ep_range->begin : c.num_slots();
  reference_ = {.tokens = tokens_.view,
                .indices = index_.view,
                .probs = probs_.view,
                .num_tokens = c.num_tokens,
                .top_k = c.top_k,
                .hidden_size = c.hidden_size,
                .num_experts = c.num_experts.value_or(-1),
                .begin = c.ep_range ? c.ep_range->begin : 0,
                .end = c.ep_range ? c.ep_range->end : std::min(c.rows, c.num_slots())};
  if (case_.probs_rows < 0) case_.probs_rows = reference_.end - reference_.begin;
  inputs_.tokens = tokens_.buffer->data();
  inputs_.indices = index_.buffer->data();
  args_.tokens = tokens_.desc;
  args_.indices = index_.desc;
  args_.ep_range = c.ep_range;
  args_.num_experts = c.num_experts;
  args_.check_indices = c.check_indices;
  args_.permuted_tokens = TensorDesc::contiguous(c.dtype, {c.rows, c.hidden_size});
  args_.sorted_indices = TensorDesc::contiguous(c.sorted_dtype, {c.num_slots()});
  if (c.probs_dtype) {
    args_.permuted_probs = TensorDesc::contiguous(*c.probs_dtype, {c.probs_rows});
  }
  if (c.counts_dtype) {
    args_.tokens_per_expert = TensorDesc::contiguous(*c.counts_dtype, {*c.num_experts});
  }
}

Permuted PermuteProblem::expected() const {
  Permuted want{ref::permuted_tokens(reference_, case_.rows),
                as_dtype(ref::sorted_indices(reference_), case_.sorted_dtype),
                {},
                {}};
  if (case_.probs_dtype) want.probs = ref::permuted_probs(reference_, case_.probs_rows);
  if (case_.counts_dtype) {
    want.counts = as_dtype(ref::tokens_per_expert(reference_), *case_.counts_dtype);
  }
  return want;
}

Permuted PermuteProblem::run(const moe::Engine& engine, int poison) const {
  const size_t slack = case_.out_slack_bytes;
  const Output tokens(&args_.permuted_tokens, slack, poison);
  const Output sorted(&args_.sorted_indices, slack, poison);
  const Output probs(given(args_.permuted_probs), slack, poison);
  const Output counts(given(args_.tokens_per_expert), slack, poison);
  moe::PermuteWithEp::Pointers pointers = inputs_;
  pointers.permuted_tokens = tokens.data();
  pointers.sorted_indices = sorted.data();
  pointers.permuted_probs = probs.data();
  pointers.tokens_per_expert = counts.data();
  const auto plan = moe::PermuteWithEp::plan(args_, engine);
  // Odd, because a workspace may have any alignment.
  const GuardedBuffer workspace(plan.workspace_bytes(), 1);
  plan.bind(pointers).run(workspace.size() > 0 ? workspace.data() : nullptr);
  EXPECT_TRUE(workspace.intact()) << "bytes around the workspace were written";
  return {tokens.bytes("permuted_tokens"), sorted.bytes("sorted_indices"),
          probs.bytes("permuted_probs"), counts.bytes("tokens_per_expert")};
}

void expect_matches_oracle(const PermuteCase& c) {
  const PermuteProblem problem(c);
  const Permuted want = problem.expected();
  const bool plain = (c.tokens.inner_stride == 1 || c.hidden_size == 1) && c.top_k <= 1024;
  for (const std::string& kernel : moe::PermuteWithEp::kernel_names()) {
    SCOPED_TRACE(testing::Message() << "kernel " << kernel << ": " << c);
    if (kernel != "portable" && !plain) {
      EXPECT_THROW(moe::PermuteWithEp::plan(problem.args(), {.kernel = kernel}),
                   moe::InvalidArgument);
      continue;
    }
    for (const int poison : {0xff, 0x5a}) {
      const Permuted got = problem.run({.num_threads = c.num_threads, .kernel = kernel}, poison);
      EXPECT_TRUE(got.tokens == want.tokens) << "permuted_tokens differs";
      EXPECT_TRUE(got.sorted == want.sorted) << "sorted_indices differs";
      EXPECT_TRUE(got.probs == want.probs) << "permuted_probs differs";
      EXPECT_TRUE(got.counts == want.counts) << "tokens_per_expert differs";
    }
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace test
