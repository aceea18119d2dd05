// Cases and tensors in words and in JSON, the same from every verb.
#pragma once

#include <span>
#include <string>

#include "cli/output.h"
#include "files/stored_tensor.h"
#include "operators/operator.h"

namespace moe::tools {

// "3 tokens, top_k 2, hidden_size 2, float32; window [1, 5) of 6 rows"
std::string describe(const Sizes& sizes);
Json to_json(const Sizes& sizes);

// "permuted_tokens [4, 2] float32"
std::string describe(const StoredTensor& tensor);
Json to_json(const StoredTensor& tensor);
Json to_json(std::span<const StoredTensor> tensors);

// 0.0123 as "12.3 ms".
std::string seconds_text(double seconds);

}  // namespace moe::tools
