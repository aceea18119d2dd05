// moe-permute: tokens to their experts and back, with the gradients. This header is the table of
// contents; each operator's contract stands in its own header.
//
//   using namespace moe;
//   PermuteWithEpGrad plan = PermuteWithEpGrad::plan({
//       .permuted_tokens_grad = TensorDesc::contiguous(DType::kF32, {4, 2}),
//       .sorted_indices = TensorDesc::contiguous(DType::kI32, {6}),
//       .top_k = 2,
//       .ep_range = EpRange{1, 5},
//       .tokens_grad = TensorDesc::contiguous(DType::kF32, {3, 2}),
//   });
//   plan.bind({.permuted_tokens_grad = grad, .sorted_indices = indices, .tokens_grad = out}).run();
#pragma once

#include "moe/engine.h"                  // threads, streams, bound calls
#include "moe/error.h"                   // exceptions
#include "moe/expert_range.h"            // windows over rows from windows over experts
#include "moe/permute_with_ep.h"         // the permutation, with or without a window
#include "moe/permute_with_ep_grad.h"    // gradient of the permutation, with or without a window
#include "moe/sort_by_expert.h"          // the index stage by itself
#include "moe/tensor.h"                  // dtypes, descriptions, windows
#include "moe/unpermute_with_ep.h"       // the way back: rows to tokens, weighted
#include "moe/unpermute_with_ep_grad.h"  // its gradient
