// moe::mpi: experts spread over the processes of an MPI communicator. Its own library, the target
// moe::mpi: find_package(moe_permute COMPONENTS mpi).
//
// Every rank has tokens of its own, as many as it likes; all together are the concatenation of the
// ranks' tokens in rank order. Rank r of n owns the E experts [floor(r * E / n),
// floor((r + 1) * E / n)). Between dispatch and combine stand the user's experts:
//
//   ExpertExchange exchange(comm, {.num_experts = E, .top_k = K, .hidden_size = H});
//   RoutedTokens routed = exchange.route(num_tokens, indices, probs);
//   std::vector<float> rows(routed.num_rows() * H), outputs(rows.size());
//   routed.dispatch(tokens, rows.data());
//   for (const ExpertRows& own : routed.experts()) {
//     // expert own.expert makes the rows [own.begin, own.end) of outputs from those of rows
//   }
//   routed.combine(outputs.data(), out);
//   ... and backward: combine_backward, the experts' own, dispatch_backward.
//
// Rows travel once to each rank that needs them, and partial sums travel back in the tokens' dtype.
// The token's owner adds them in float32 (float64 for float64) in rank order and rounds once: the
// results are deterministic, and both forms give the same values. All row moving and arithmetic is
// done by the operators of moe/moe.h, with their contracts.
//
// The constructor and every function that is marked collective must be called by all ranks of the
// communicator, in the same order. What is wrong for all is thrown by all; what is thrown by one
// rank alone (std::bad_alloc, a null pointer where an operator sees it) leaves the others waiting,
// so a program should end the job (MPI_Abort) on an exception. A null pointer that MPI alone reads
// is not checked. Errors of MPI itself, a dead rank among them, end the job, whatever handler the
// program's communicator has.
//
// MPI is initialized before, with MPI_THREAD_FUNNELED at least: only the calling thread calls it.
// The last of an exchange and its RoutedTokens to go frees a communicator, which is collective, or
// does nothing after MPI_Finalize.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "moe/engine.h"
#include "moe/error.h"
#include "moe/export.h"
#include "moe/tensor.h"

namespace moe::mpi {

// How rows come to the ranks of their experts.
enum class ExchangeForm : uint8_t {
  kAllGather,  // every rank gets all tokens, and sends a partial sum of every token to its owner
  kAllToAll,   // a token goes to each rank that owns one of its experts, and one partial sum comes
               // back from each; exact numbers of rows, no padding
};

// Payload bytes that this rank gave to MPI for other ranks, and got from them; what a rank sends
// itself is not counted. An all-gather sends a rank's block n - 1 times.
struct Traffic {
  struct Bytes {
    int64_t sent = 0;
    int64_t received = 0;
  };
  Bytes routing;     // number of tokens, indices and probs of all tokens
  Bytes rows;        // dispatch, combine_backward: rows to their experts' ranks
  Bytes partials;    // combine, dispatch_backward: partial sums back
  Bytes probs_grad;  // combine_backward: partial gradients of probs back
};

// Rows that came for one expert, [begin, end) of a rank's rows, in the order of their slots.
struct ExpertRows {
  int64_t expert = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

class RoutedTokens;

// An exchange between the ranks of a communicator. All uses of one exchange share its buffers: not
// safe from several threads at once. The communicator is duplicated, so the exchange's messages
// never meet the program's.
class MOE_API ExpertExchange {
 public:
  // The same on all ranks.
  struct Args {
    int64_t num_experts = 0;  // E, in [1, 2^31)
    int64_t top_k = 1;        // K >= 1
    int64_t hidden_size = 0;  // H >= 1; a row has less than 2^31 bytes
    // Of tokens, rows, partial sums and gradients: float32, float16, bfloat16 or float64.
    DType dtype = DType::kF32;
    // Of probs and their gradient; float64 goes with float64 only. Absent: no probs, all weights
    // are 1.
    std::optional<DType> probs_dtype = DType::kF32;
    ExchangeForm form = ExchangeForm::kAllToAll;
    // Each rank's tokens are cut into so many pieces of nearly equal size, and piece c of all ranks
    // is exchanged at once, while piece c - 1 is permuted. Rows lie piece by piece.
    int64_t num_chunks = 1;
  };

  // Collective. Throws InvalidArgument on every rank where an argument is invalid, and where the
  // ranks disagree: it says which argument, and what which rank has.
  ExpertExchange(MPI_Comm comm, const Args& args, const Engine& engine = {});

  // Collective: gathers where all tokens go. indices [T, K] and probs [T, K] are this rank's,
  // contiguous, and not needed afterwards; T may differ between ranks and be 0. A slot whose id is
  // not in [0, E) is not routed: it adds zero and gets zero gradients. Throws InvalidArgument on
  // every rank where num_tokens is negative on one, where all ranks together have 2^31 tokens or
  // more, and where a chunk of all ranks has 2^31 or more slots (of K, or of n ranks if those are
  // more).
  RoutedTokens route(int64_t num_tokens, const int32_t* indices, const void* probs);

  // Since construction.
  const Traffic& traffic() const noexcept;

 private:
  friend class RoutedTokens;
  struct State;
  std::shared_ptr<State> state_;
};

// One routing of the tokens of all ranks, as this rank sees it. Keeps its exchange alive, and what
// the gradients need; the rows stay the caller's. Base addresses of contiguous tensors, null where
// they have no elements; an output overlaps nothing.
class MOE_API RoutedTokens {
 public:
  // R: the rows that come to this rank.
  int64_t num_rows() const noexcept;
  // The rows of this rank's experts: chunk by chunk, in each chunk by expert, experts without rows
  // left out. Together they are [0, R); with one chunk an expert stands here at most once.
  std::span<const ExpertRows> experts() const noexcept;

  // Collective. tokens [T, H] to rows [R, H].
  void dispatch(const void* tokens, void* rows) const;
  // Collective. The experts' rows [R, H] to out [T, H]:
  // out[t] = sum over k of probs[t, k] * row of slot (t, k). A slot whose prob is exactly 0 adds
  // +0 and its row is not read.
  void combine(const void* rows, void* out) const;

  // Collective. out_grad [T, H] and the experts' rows [R, H] to the gradients
  // rows_grad [R, H] and probs_grad [T, K]. Without probs, rows and probs_grad are null.
  void combine_backward(const void* out_grad, const void* rows, void* rows_grad,
                        void* probs_grad) const;
  // Collective. rows_grad [R, H] to tokens_grad [T, H].
  void dispatch_backward(const void* rows_grad, void* tokens_grad) const;

 private:
  friend class ExpertExchange;
  struct State;
  explicit RoutedTokens(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace moe::mpi
