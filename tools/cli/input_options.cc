#include "cli/input_options.h"

#include <CLI/CLI.hpp>

#include "cli/errors.h"
#include "files/text.h"

namespace moe::tools {

void InputOptions::add(CLI::App& app, bool required) {
  auto* files = app.add_option("files", files_,
                               "Tensors to read: FILE.safetensors (all, by their names), "
                               "FILE.npy (one, by the file's name), a folder of .npy files; "
                               "NAME=FILE.npy or NAME=FILE.safetensors:TENSOR renames");
  files->type_name("[NAME=]FILE...");
  if (required) files->required();
  app.add_option("--as", as_,
                 "Read a tensor's bytes as a type of the same width, for instance "
                 "tokens=bfloat16 where NumPy had no name for it")
      ->type_name("NAME=DTYPE")
      ->take_all()
      ->allow_extra_args(false);
}

Operand operand_of(const StoredTensor& tensor) {
  const DTypeFacts& d = facts(tensor.dtype);
  if (!d.operand) {
    const bool unnamed = !d.safetensors;
    throw UsageError(
        text(printable(tensor.name), ": ", d.name, ", but needs float32, float16, ",
             "bfloat16, float64, int32 or int64",
             unnamed ? text("; say which with --as ", printable(tensor.name), "=bfloat16") : ""));
  }
  Operand operand{TensorDesc::contiguous(*d.operand, tensor.shape), tensor.bytes.data()};
  if (!tensor.fortran_order) return operand;
  TensorDesc& desc = operand.desc;
  const int kept = std::min(desc.num_dims, TensorDesc::kMaxDims);
  for (int64_t i = 0, stride = 1; i < kept; ++i) {
    desc.strides[static_cast<size_t>(i)] = stride;
    stride *= std::max<int64_t>(desc.shape[static_cast<size_t>(i)], 1);
  }
  return operand;
}

Operands operands_for(const Operator& op, const Inputs& inputs) {
  Operands operands;
  for (const Input& input : op.inputs) {
    const StoredTensor* tensor = inputs.find(input.name);
    if (tensor) {
      operands[input.name] = operand_of(*tensor);
    } else if (input.required) {
      throw UsageError(text(input.name, ": missing, the files hold ", inputs.names(), "; name it: ",
                            input.name, "=FILE.npy or ", input.name, "=FILE.safetensors:TENSOR"));
    }
  }
  // Not read by every operator, but they show top_k, and mistakes are made with them.
  for (const char* name : {"indices", "probs"}) {
    const StoredTensor* tensor = inputs.find(name);
    if (tensor && facts(tensor->dtype).operand) operands.try_emplace(name, operand_of(*tensor));
  }
  return operands;
}

}  // namespace moe::tools
