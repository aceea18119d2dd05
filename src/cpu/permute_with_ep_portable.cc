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

template <class Index, class Bits>
void copy_tokens(const Problem& p, const Pointers& at, const Chunk& chunk) {
  constexpr int64_t kBytes = sizeof(Bits);
  auto slots = slots_of<Index>(p, at, chunk.first_token * p.sort.top_k);
  for (int64_t token = chunk.first_token; token < chunk.last_token; ++token) {
    for (int64_t k = 0; k < p.sort.top_k; ++k) {
      const auto [row, inside] = slots.next();
      if (!inside) continue;
      copy_row<Bits>(p, at, token, row, chunk.first_byte / kBytes, chunk.last_byte / kBytes);
    }
  }
}

void permute_chunk(const Problem& p, const Pointers& at, const Chunk& chunk, bool /*streaming*/) {
  note_target("portable");
  visit_index(p.sort.sorted_dtype, [&](auto index) {
    visit_bytes(p.tokens_dtype,
                [&](auto bits) { copy_tokens<decltype(index), decltype(bits)>(p, at, chunk); });
  });
}

void run(const Problem& p, const Pointers& at, void* workspace) {
  run_in_chunks(p, at, workspace, permute_chunk);
}

std::string takes_everything(const Problem&) { return {}; }

}  // namespace

PermuteWithEpKernels::value_type portable_permute_with_ep() {
  return {"portable", takes_everything, workspace_bytes, run};
}

}  // namespace moe::cpu
