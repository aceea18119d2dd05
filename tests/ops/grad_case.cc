#include "ops/grad_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ostream>

#include "ref/routing.h"

namespace test {
namespace {

using moe::DType;
using moe::TensorDesc;

uint32_t pattern(float value) { return std::bit_cast<uint32_t>(value); }

// A value of a few magnitudes, or now and then a zero, the smallest subnormals or a huge one.
double finite_value(ref::Random& random, double tiny, double huge) {
  const double sign = random.below(2) ? -1 : 1;
  switch (random.below(16)) {
    case 0:
      return sign * 0.0;
    case 1:
      return sign * tiny * static_cast<double>(random.below(9));
    case 2:
      return sign * huge * random.unit();
    default:
      return sign * std::ldexp(1 + random.unit(), static_cast<int>(random.below(24)) - 12);
  }
}

uint64_t random_double(Values values, ref::Random& random) {
  if (values == Values::kAnyBits) return random.next();
  if (values == Values::kSmallInts) return std::bit_cast<uint64_t>(random.below(17) - 8.0);
  return std::bit_cast<uint64_t>(finite_value(random, 0x1p-1074, 0x1p1020));
}

uint64_t random_bits(DType dtype, Values values, ref::Random& random) {
  if (dtype == DType::kF64) return random_double(values, random);
  const bool wide = dtype == DType::kF32;
  if (values == Values::kAnyBits) return random.next() & (wide ? 0xffffffffu : 0xffffu);
  if (values == Values::kSmallInts) {
    const uint32_t bits = pattern(static_cast<float>(random.below(17) - 8));
    return wide ? bits : ref::narrow(ref_type(dtype), bits);
  }
  if (dtype == DType::kF16) {
    const auto value = static_cast<float>(finite_value(random, 0x1p-24, 0x1p13));
    return ref::narrow(ref::Type::kF16, pattern(value));
  }
  const auto value = static_cast<float>(finite_value(random, wide ? 0x1p-149 : 0x1p-133, 0x1p120));
  return wide ? pattern(value) : ref::narrow(ref::Type::kBF16, pattern(value));
}

void store_bits(std::byte* data, int64_t index, int64_t bytes, uint64_t bits) {
  std::memcpy(data + index * bytes, &bits, static_cast<size_t>(bytes));  // little-endian
}

// Bytes up to the last of `rows` rows of `width` elements.
size_t span_bytes(DType dtype, const Layout& layout, int64_t rows, int64_t width) {
  if (rows <= 0 || width <= 0) return 0;
  const int64_t last =
      layout.offset + (rows - 1) * layout.stride + (width - 1) * layout.inner_stride;
  return static_cast<size_t>((last + 1) * moe::dtype_bytes(dtype));
}

bool is_nan(DType dtype, const std::byte* element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<size_t>(moe::dtype_bytes(dtype)));
  if (dtype == DType::kF64) return (bits & ~(uint64_t{1} << 63)) > 0x7ff0000000000000;
  if (dtype == DType::kF32) return (bits & 0x7fffffff) > 0x7f800000;
  return (bits & 0x7fff) > (dtype == DType::kF16 ? 0x7c00 : 0x7f80);
}

std::string hex(const std::byte* element, int64_t bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<size_t>(bytes));
  char text[32];
  std::snprintf(text, sizeof text, "0x%0*llx", static_cast<int>(2 * bytes),
                static_cast<unsigned long long>(bits));
  return text;
}

std::vector<std::byte> take(const GuardedBuffer& buffer, const char* name) {
  EXPECT_TRUE(buffer.intact()) << name << ": bytes around the output were written";
  return {buffer.data(), buffer.data() + buffer.size()};
}

std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  return out << layout.stride << "," << layout.inner_stride << "+" << layout.offset << "/"
             << layout.slack_bytes;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const GradCase& c) {
  out << moe::dtype_name(c.dtype) << " " << moe::dtype_name(c.index_dtype);
  if (c.probs_dtype) out << " probs " << moe::dtype_name(*c.probs_dtype);
  out << " T " << c.num_tokens << " K " << c.top_k << " H " << c.hidden_size;
  if (c.ep_range) out << " range [" << c.ep_range->begin << ", " << c.ep_range->end << ")";
  out << " rows " << c.rows << " probs rows " << c.probs_rows << " tokens " << c.tokens;
  out << " probs " << c.probs << " index " << c.index << " out slack " << c.out_slack_bytes;
  return out << " threads " << c.num_threads << " seed " << c.seed;
}

ref::Type ref_type(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return ref::Type::kF16;
    case DType::kBF16:
      return ref::Type::kBF16;
    case DType::kF64:
      return ref::Type::kF64;
    case DType::kI32:
      return ref::Type::kI32;
    case DType::kI64:
      return ref::Type::kI64;
    default:
      return ref::Type::kF32;
  }
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
  tokens_ = std::make_unique<GuardedBuffer>(span_bytes(case_.dtype, layout, window_rows_, width),
                                            layout.slack_bytes);
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
  probs_ = std::make_unique<GuardedBuffer>(span_bytes(dtype, layout, window_rows_, 1),
                                           layout.slack_bytes);
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

void expect_same_tokens(DType dtype, const std::vector<std::byte>& got,
                        const std::vector<std::byte>& want) {
  ASSERT_EQ(got.size(), want.size());
  if (got == want) return;
  const int64_t bytes = moe::dtype_bytes(dtype);
  for (int64_t i = 0; i < static_cast<int64_t>(got.size()) / bytes; ++i) {
    const std::byte *a = got.data() + i * bytes, *b = want.data() + i * bytes;
    if (std::memcmp(a, b, static_cast<size_t>(bytes)) == 0) continue;
    if (is_nan(dtype, a) && is_nan(dtype, b)) continue;
    FAIL() << "tokens_grad element " << i << ": got " << hex(a, bytes) << ", want "
           << hex(b, bytes);
  }
}

void expect_same(const GradCase& c, const Outputs& got, const Outputs& want) {
  expect_same_tokens(c.dtype, got.tokens, want.tokens);
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
