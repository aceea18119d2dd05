// Checks that every operator makes of its tensors. Each throws InvalidArgument (or NullArgument)
// for the argument `name`; none knows any operator.
#pragma once

#include <initializer_list>
#include <string>

#include "moe/error.h"
#include "moe/tensor.h"

namespace moe {

// "[4, 2]"
std::string shape_text(const TensorDesc& desc);

// A floating dtype; one of the index dtypes.
void check_float_dtype(const char* name, const TensorDesc& desc);
void check_index_dtype(const char* name, const TensorDesc& desc);

// As many dimensions as `dims` names, for instance "[rows, hidden_size]", no negative size, stride
// (of a dimension with more than one element) or offset, and every byte offset and the byte count
// below 2^63.
void check_layout(const char* name, const TensorDesc& desc, int num_dims, const char* dims);

// An output: shape as wanted (`dims` names it), row-major without gaps.
void check_output_layout(const char* name, const TensorDesc& desc,
                         std::initializer_list<int64_t> shape, const char* dims);
// The same, and dtype as its input's.
void check_output(const char* name, const TensorDesc& desc, std::initializer_list<int64_t> shape,
                  const char* dims, const char* input_name, const TensorDesc& input);

// Elements of a description that passed check_layout.
int64_t num_elements(const TensorDesc& desc);

// A tensor with its address, as bind() sees it. A null `desc` stands for an absent tensor.
struct BoundTensor {
  const char* name;
  const TensorDesc* desc;
  const void* data;
};

// No tensor with elements is null.
void check_addresses(std::initializer_list<BoundTensor> tensors);

// The byte ranges of the outputs, from lowest to highest element, are apart from each other's and
// from the inputs'.
void check_overlap(std::initializer_list<BoundTensor> outputs,
                   std::initializer_list<BoundTensor> inputs);

// The address of the element (0, 0, ...); null for an absent or null tensor. Not const: an input's
// converts back at once, an output's was not const to begin with.
void* first_element(const BoundTensor& tensor);

}  // namespace moe
