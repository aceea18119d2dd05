// Each handler takes [window], tensors, [probs], and gives tensors, [probs]: what stands in
// brackets is there where the attribute has_window or has_probs says so. No Python runs in any of
// them.
#include "xla.h"

#include <memory>
#include <optional>
#include <string>

#include "moe/moe.h"
#include "xla/ffi/api/ffi.h"

namespace moe::python {
namespace {

namespace ffi = xla::ffi;

struct Tensor {
  TensorDesc desc{};
  void* data = nullptr;
};

DType dtype_of(const char* name, ffi::DataType type) {
  switch (type) {
    case ffi::DataType::F32:
      return DType::kF32;
    case ffi::DataType::F16:
      return DType::kF16;
    case ffi::DataType::BF16:
      return DType::kBF16;
    case ffi::DataType::F64:
      return DType::kF64;
    case ffi::DataType::S32:
      return DType::kI32;
    case ffi::DataType::S64:
      return DType::kI64;
    default:
      throw InvalidArgument(name, "a dtype that no operator takes");
  }
}

Tensor tensor_of(const char* name, const ffi::AnyBuffer& buffer) {
  const auto shape = buffer.dimensions();
  return {TensorDesc::contiguous(dtype_of(name, buffer.element_type()),
                                 std::span(shape.begin(), shape.size())),
          buffer.untyped_data()};
}

// Arguments and results, one after another.
class Call {
 public:
  Call(ffi::RemainingArgs args, ffi::RemainingRets rets, int64_t k, bool window, bool probs)
      : top_k(k), has_probs(probs), args_(args), rets_(rets) {
    if (window) ep_range_ = read_window(in("ep_range"));
  }

  Tensor in(const char* name) {
    const auto buffer = args_.get<ffi::AnyBuffer>(num_in_++);
    if (buffer.has_error()) throw NullArgument(name, buffer.error().message());
    return tensor_of(name, *buffer);
  }
  Tensor out(const char* name) {
    auto buffer = rets_.get<ffi::AnyBuffer>(num_out_++);
    if (buffer.has_error()) throw NullArgument(name, buffer.error().message());
    return tensor_of(name, **buffer);
  }
  std::optional<Tensor> probs_in(const char* name) {
    return has_probs ? std::optional(in(name)) : std::nullopt;
  }
  std::optional<Tensor> probs_out(const char* name) {
    return has_probs ? std::optional(out(name)) : std::nullopt;
  }
  const std::optional<EpRange>& ep_range() const { return ep_range_; }

  const int64_t top_k;
  const bool has_probs;

 private:
  static EpRange read_window(const Tensor& window) {
    if (window.desc.num_dims != 1 || window.desc.shape[0] != 2) {
      throw InvalidArgument("ep_range", "no pair, but needs begin and end");
    }
    if (window.desc.dtype == DType::kI32) {
      const auto* values = static_cast<const int32_t*>(window.data);
      return {values[0], values[1]};
    }
    const auto* values = static_cast<const int64_t*>(window.data);
    return {values[0], values[1]};
  }

  ffi::RemainingArgs args_;
  ffi::RemainingRets rets_;
  size_t num_in_ = 0, num_out_ = 0;
  std::optional<EpRange> ep_range_{};
};

std::optional<TensorDesc> desc_of(const std::optional<Tensor>& tensor) {
  return tensor ? std::optional(tensor->desc) : std::nullopt;
}
void* data_of(const std::optional<Tensor>& tensor) { return tensor ? tensor->data : nullptr; }

BoundCall permute(Call& call, int64_t num_experts) {
  const Tensor tokens = call.in("tokens"), indices = call.in("indices");
  const auto probs = call.probs_in("probs");
  const Tensor rows = call.out("permuted_tokens"), sorted_indices = call.out("sorted_indices");
  const auto permuted_probs = call.probs_out("permuted_probs");
  return PermuteWithEp::plan(
             {.tokens = tokens.desc,
              .indices = indices.desc,
              .probs = desc_of(probs),
              .ep_range = call.ep_range(),
              .num_experts = num_experts < 0 ? std::nullopt : std::optional(num_experts),
              .permuted_tokens = rows.desc,
              .sorted_indices = sorted_indices.desc,
              .permuted_probs = desc_of(permuted_probs)})
      .bind({.tokens = tokens.data,
             .indices = indices.data,
             .probs = data_of(probs),
             .permuted_tokens = rows.data,
             .sorted_indices = sorted_indices.data,
             .permuted_probs = data_of(permuted_probs)});
}

BoundCall permute_grad(Call& call, int64_t) {
  const Tensor rows = call.in("permuted_tokens_grad"), sorted_indices = call.in("sorted_indices");
  const auto probs = call.probs_in("permuted_probs_grad");
  const Tensor tokens_grad = call.out("tokens_grad");
  const auto probs_grad = call.probs_out("probs_grad");
  return PermuteWithEpGrad::plan({.permuted_tokens_grad = rows.desc,
                                  .sorted_indices = sorted_indices.desc,
                                  .permuted_probs_grad = desc_of(probs),
                                  .top_k = call.top_k,
                                  .ep_range = call.ep_range(),
                                  .tokens_grad = tokens_grad.desc,
                                  .probs_grad = desc_of(probs_grad)})
      .bind({.permuted_tokens_grad = rows.data,
             .sorted_indices = sorted_indices.data,
             .permuted_probs_grad = data_of(probs),
             .tokens_grad = tokens_grad.data,
             .probs_grad = data_of(probs_grad)});
}

BoundCall unpermute(Call& call, int64_t) {
  const Tensor rows = call.in("permuted_tokens"), sorted_indices = call.in("sorted_indices");
  const auto probs = call.probs_in("probs");
  const Tensor out = call.out("tokens");
  return UnpermuteWithEp::plan({.permuted_tokens = rows.desc,
                                .sorted_indices = sorted_indices.desc,
                                .probs = desc_of(probs),
                                .top_k = call.top_k,
                                .ep_range = call.ep_range(),
                                .out = out.desc})
      .bind({.permuted_tokens = rows.data,
             .sorted_indices = sorted_indices.data,
             .probs = data_of(probs),
             .out = out.data});
}

// The permuted tokens come with probs only: nothing else needs them.
BoundCall unpermute_grad(Call& call, int64_t) {
  const Tensor grad = call.in("tokens_grad"), sorted_indices = call.in("sorted_indices");
  const auto rows = call.probs_in("permuted_tokens"), probs = call.probs_in("probs");
  const Tensor rows_grad = call.out("permuted_tokens_grad");
  const auto probs_grad = call.probs_out("probs_grad");
  return UnpermuteWithEpGrad::plan({.unpermuted_tokens_grad = grad.desc,
                                    .sorted_indices = sorted_indices.desc,
                                    .permuted_tokens = desc_of(rows),
                                    .probs = desc_of(probs),
                                    .top_k = call.top_k,
                                    .ep_range = call.ep_range(),
                                    .permuted_tokens_grad = rows_grad.desc,
                                    .probs_grad = desc_of(probs_grad)})
      .bind({.unpermuted_tokens_grad = grad.data,
             .sorted_indices = sorted_indices.data,
             .permuted_tokens = data_of(rows),
             .probs = data_of(probs),
             .permuted_tokens_grad = rows_grad.data,
             .probs_grad = data_of(probs_grad)});
}

using Bind = BoundCall (*)(Call& call, int64_t num_experts);

template <Bind bind>
ffi::Error run(ffi::RemainingArgs args, ffi::RemainingRets rets, int64_t top_k, bool has_window,
               bool has_probs, int64_t num_experts) {
  try {
    Call call(args, rets, top_k, has_window, has_probs);
    const BoundCall bound = bind(call, num_experts);
    const std::unique_ptr<char[]> workspace(new char[bound.workspace_bytes()]);  // not set to zero
    bound.run(workspace.get());
    return ffi::Error::Success();
  } catch (const InvalidArgument& error) {
    return ffi::Error::InvalidArgument(error.what());
  } catch (const std::exception& error) {
    return ffi::Error::Internal(error.what());
  }
}

template <Bind bind>
nb::capsule handler() {
  constexpr XLA_FFI_Handler* entry = +[](XLA_FFI_CallFrame* frame) {
    static auto* const bound = ffi::Ffi::Bind()
                                   .RemainingArgs()
                                   .RemainingRets()
                                   .Attr<int64_t>("top_k")
                                   .Attr<bool>("has_window")
                                   .Attr<bool>("has_probs")
                                   .Attr<int64_t>("num_experts")
                                   .To(run<bind>)
                                   .release();
    return bound->Call(frame);
  };
  return nb::capsule(reinterpret_cast<void*>(entry));
}

}  // namespace

nb::dict xla_handlers() {
  nb::dict handlers;
  handlers["permute"] = handler<permute>();
  handlers["permute_grad"] = handler<permute_grad>();
  handlers["unpermute"] = handler<unpermute>();
  handlers["unpermute_grad"] = handler<unpermute_grad>();
  return handlers;
}

}  // namespace moe::python
