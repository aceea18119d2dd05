// What an invalid call must throw: the type, the argument and every word of the message.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "moe/moe.h"

namespace test {

// A valid call that the rejection tests break: K = 2, range [1, 5), 3 tokens of 2 elements, as in
// the page's sample.
inline moe::PermuteWithEpGrad::Args sample_args() {
  using moe::DType, moe::TensorDesc;
  return {.permuted_tokens_grad = TensorDesc::contiguous(DType::kF32, {4, 2}),
          .sorted_indices = TensorDesc::contiguous(DType::kI32, {6}),
          .permuted_probs_grad = TensorDesc::contiguous(DType::kF32, {4}),
          .top_k = 2,
          .ep_range = moe::EpRange{1, 5},
          .tokens_grad = TensorDesc::contiguous(DType::kF32, {3, 2}),
          .probs_grad = TensorDesc::contiguous(DType::kF32, {3, 2})};
}

// `call` throws exactly an `Exception` for `argument`, with the message "argument: problem".
template <class Exception = moe::InvalidArgument, class Call>
void expect_rejected(const std::string& argument, const std::string& problem, Call&& call) {
  SCOPED_TRACE(argument + ": " + problem);
  try {
    call();
    ADD_FAILURE() << "was accepted";
  } catch (const moe::InvalidArgument& error) {
    EXPECT_EQ(error.argument(), argument);
    EXPECT_EQ(std::string(error.what()), argument + ": " + problem);
    EXPECT_TRUE(typeid(error) == typeid(Exception)) << typeid(error).name();
  }
}

}  // namespace test
