// PermuteWithEp in plain C++, for what the other kernels do not take.
#include "core/dtypes.h"
#include "cpu/permute_with_ep.h"

namespace moe::cpu {
namespace {

using Problem = PermuteWithEpProblem;
using Pointers = PermuteWithEpPointers;

// The elements [first, last) of a token's row, to a row of the output.
template <class Bits>
void copy_row(const Problem& p, const Pointers& at, int64_t token, int64_t row, int64_t first,
              int64_t last) {
  for (int64_t h = first; h < last; ++h) {
    store(at.permuted_tokens, row * p.hidden_size + h,
          load<Bits>(at.tokens, token * p.row_stride + h * p.inner_stride));
  }
}

// Calls fn(token, k, row) for the chunk's slots that have a row in the window.
template <class Fn>
void for_each_row(const Problem& p, const Pointers& at, const Chunk& chunk, Fn fn) {
  visit_index(p.sort.sorted_dtype, [&](auto index) {
    auto slots = slots_of<decltype(index)>(p, at, chunk.first_token * p.sort.top_k);
    for (int64_t token = chunk.first_token; token < chunk.last_token; ++token) {
      for (int64_t k = 0; k < p.sort.top_k; ++k) {
        const auto [row, inside] = slots.next();
        if (inside) fn(token, k, row);
      }
    }
  });
}

void copy_tokens(const Problem& p, const Pointers& at, const Chunk& chunk) {
  visit_bytes(p.tokens_dtype, [&](auto bits) {
    using Bits = decltype(bits);
    constexpr int64_t kBytes = sizeof(Bits);
    for_each_row(p, at, chunk, [&](int64_t token, int64_t, int64_t row) {
      copy_row<Bits>(p, at, token, row, chunk.first_byte / kBytes, chunk.last_byte / kBytes);
    });
  });
}

void copy_probs(const Problem& p, const Pointers& at, const Chunk& chunk) {
  visit_bytes(p.probs_dtype, [&](auto bits) {
    for_each_row(p, at, chunk, [&](int64_t token, int64_t k, int64_t row) {
      const int64_t from = token * p.probs_token_stride + k * p.probs_slot_stride;
      store(at.permuted_probs, row, load<decltype(bits)>(at.probs, from));
    });
  });
}

void permute_chunks(const Problem& p, const Pointers& at, Chunks& chunks, bool /*streaming*/) {
  note_target("portable");
  for (Chunk chunk; chunks.next(chunk);) {
    copy_tokens(p, at, chunk);
    if (p.has_probs && chunk.first_byte == 0) copy_probs(p, at, chunk);
  }
}

void run(const Problem& p, const Pointers& at, void* workspace) {
  run_in_chunks(p, at, workspace, permute_chunks);
}

std::string takes_everything(const Problem&) { return {}; }

}  // namespace

PermuteWithEpKernels::value_type portable_permute_with_ep() {
  return {"portable", takes_everything, workspace_bytes, bound_to<Problem, Pointers>(run)};
}

}  // namespace moe::cpu
