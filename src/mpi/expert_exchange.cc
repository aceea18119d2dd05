#include <utility>
#include <vector>

#include "moe/mpi.h"
#include "mpi/agreement.h"
#include "mpi/chunk.h"
#include "mpi/lanes.h"
#include "mpi/routing.h"
#include "mpi/row_operators.h"
#include "mpi/wire.h"

namespace moe::mpi {

struct ExpertExchange::State {
  Wire wire;
  Args args;
  Engine engine;
  Traffic traffic{};
  Lanes lanes{};

  RowType row() const { return {args.dtype, args.hidden_size}; }
};

struct RoutedTokens::State {
  std::shared_ptr<ExpertExchange::State> exchange;
  Routing routing;
  std::vector<Chunk> chunks;
  std::vector<int64_t> first_rows;  // [chunks]: of this rank's rows
  std::vector<ExpertRows> experts;
  int64_t num_rows = 0;

  void add_chunk(Chunk chunk);

  // Where chunk c's rows, and this rank's tokens of it, stand in the caller's tensors.
  template <class Byte>
  Byte* rows_of(size_t c, Byte* rows) const {
    return rows == nullptr ? nullptr : rows + first_rows[c] * exchange->row().bytes();
  }
  template <class Byte>
  Byte* tokens_of(size_t c, Byte* tokens) const {
    return tokens + chunks[c].token_begin * exchange->row().bytes();
  }
  Weights weights_of(size_t c) const {
    return {exchange->args.probs_dtype, chunks[c].probs.data()};
  }

  // This rank's tokens of chunk c to the ranks of their experts. They arrive in lane.incoming.
  void send_rows(size_t c, Lane& lane, const std::byte* tokens) const;
  // The partial sums in lane.outgoing to the tokens' owners.
  void send_partials(size_t c, Lane& lane, const RowType& row, Traffic::Bytes& traffic) const;
  // Makes chunk c's partial sums by make_partials(c, partials), and each token's sum of its own.
  template <class MakePartials>
  void collect(std::byte* tokens, const MakePartials& make_partials) const;
};

void RoutedTokens::State::add_chunk(Chunk chunk) {
  first_rows.push_back(num_rows);
  const auto [begin, end] = experts_of_rank(routing, routing.rank);
  for (int64_t expert = begin; expert < end; ++expert) {
    const int64_t count = chunk.tokens_per_expert[static_cast<size_t>(expert)];
    if (count > 0) experts.push_back({expert, num_rows, num_rows + count});
    num_rows += count;
  }
  chunks.push_back(std::move(chunk));
}

void RoutedTokens::State::send_rows(size_t c, Lane& lane, const std::byte* tokens) const {
  const Chunk& chunk = chunks[c];
  const RowType row = exchange->row();
  Traffic::Bytes& traffic = exchange->traffic.rows;
  void* incoming = lane.incoming.of_size(chunk.num_received * row.bytes());
  if (exchange->args.form == ExchangeForm::kAllGather) {
    lane.transfer =
        exchange->wire.all_gather(row.bytes(), tokens_of(c, tokens), chunk.from, incoming, traffic);
    return;
  }
  void* outgoing = lane.outgoing.of_size(chunk.num_copies * row.bytes());
  permute(row, tokens_of(c, tokens), chunk.copies(), {0, chunk.num_copies}, outgoing,
          exchange->engine);
  lane.transfer =
      exchange->wire.all_to_all(row.bytes(), outgoing, chunk.to, incoming, chunk.from, traffic);
}

void RoutedTokens::State::send_partials(size_t c, Lane& lane, const RowType& row,
                                        Traffic::Bytes& traffic) const {
  const Chunk& chunk = chunks[c];
  void* incoming = lane.incoming.of_size(chunk.num_copies * row.bytes());
  lane.transfer = exchange->wire.all_to_all(row.bytes(), lane.outgoing.data(), chunk.from, incoming,
                                            chunk.to, traffic);
}

template <class MakePartials>
void RoutedTokens::State::collect(std::byte* tokens, const MakePartials& make_partials) const {
  const RowType row = exchange->row();
  pipeline(
      exchange->lanes, chunks.size(),
      [&](size_t c, Lane& lane) {
        make_partials(c, lane.outgoing.of_size(chunks[c].num_received * row.bytes()));
        send_partials(c, lane, row, exchange->traffic.partials);
      },
      [&](size_t c, Lane& lane) {
        add_rows(row, lane.incoming.data(), chunks[c].returned_rows(), tokens_of(c, tokens),
                 exchange->engine);
      });
}

ExpertExchange::ExpertExchange(MPI_Comm comm, const Args& args, const Engine& engine)
    : state_(new State{.wire = Wire(comm), .args = args, .engine = engine}) {
  check_agreement(state_->wire, args);
}

const Traffic& ExpertExchange::traffic() const noexcept { return state_->traffic; }

RoutedTokens ExpertExchange::route(int64_t num_tokens, const int32_t* indices, const void* probs) {
  const Args& args = state_->args;
  auto routed = std::make_shared<RoutedTokens::State>();
  routed->exchange = state_;
  routed->routing =
      gather_routing(state_->wire, args, num_tokens, indices, probs, state_->traffic.routing);
  for (int64_t c = 0; c < args.num_chunks; ++c) {
    routed->add_chunk(make_chunk(routed->routing, args.form, c, args.num_chunks, state_->engine));
  }
  return RoutedTokens(std::move(routed));
}

int64_t RoutedTokens::num_rows() const noexcept { return state_->num_rows; }

std::span<const ExpertRows> RoutedTokens::experts() const noexcept { return state_->experts; }

void RoutedTokens::dispatch(const void* tokens, void* rows) const {
  const State& s = *state_;
  pipeline(
      s.exchange->lanes, s.chunks.size(),
      [&](size_t c, Lane& lane) { s.send_rows(c, lane, static_cast<const std::byte*>(tokens)); },
      [&](size_t c, Lane& lane) {
        permute(s.exchange->row(), lane.incoming.data(), s.chunks[c].received_slots(s.routing),
                s.chunks[c].window, s.rows_of(c, static_cast<std::byte*>(rows)),
                s.exchange->engine);
      });
}

void RoutedTokens::combine(const void* rows, void* out) const {
  const State& s = *state_;
  s.collect(static_cast<std::byte*>(out), [&](size_t c, void* partials) {
    unpermute(s.exchange->row(), s.rows_of(c, static_cast<const std::byte*>(rows)),
              s.chunks[c].received_rows(s.routing), s.weights_of(c), partials, s.exchange->engine);
  });
}

void RoutedTokens::combine_backward(const void* out_grad, const void* rows, void* rows_grad,
                                    void* probs_grad) const {
  const State& s = *state_;
  const bool has_probs = s.exchange->args.probs_dtype.has_value();
  const RowType slot_row{has_probs ? *s.exchange->args.probs_dtype : DType::kF32, s.routing.top_k};
  // Small, and waited for at the end only.
  std::vector<Lane> probs_lanes(s.chunks.size());
  pipeline(
      s.exchange->lanes, s.chunks.size(),
      [&](size_t c, Lane& lane) { s.send_rows(c, lane, static_cast<const std::byte*>(out_grad)); },
      [&](size_t c, Lane& lane) {
        const Chunk& chunk = s.chunks[c];
        Lane& probs_lane = probs_lanes[c];
        unpermute_grad(
            s.exchange->row(), lane.incoming.data(), chunk.received_rows(s.routing),
            s.rows_of(c, static_cast<const std::byte*>(rows)), s.weights_of(c),
            s.rows_of(c, static_cast<std::byte*>(rows_grad)),
            probs_lane.outgoing.of_size(has_probs ? chunk.num_received * slot_row.bytes() : 0),
            s.exchange->engine);
        if (has_probs) s.send_partials(c, probs_lane, slot_row, s.exchange->traffic.probs_grad);
      });
  if (!has_probs) return;
  for (size_t c = 0; c < s.chunks.size(); ++c) {
    probs_lanes[c].transfer.wait();
    // One rank has a slot's expert, and all others give 0: the sum is a copy.
    add_rows(slot_row, probs_lanes[c].incoming.data(), s.chunks[c].returned_rows(),
             static_cast<std::byte*>(probs_grad) + s.chunks[c].token_begin * slot_row.bytes(),
             s.exchange->engine);
  }
}

void RoutedTokens::dispatch_backward(const void* rows_grad, void* tokens_grad) const {
  const State& s = *state_;
  s.collect(static_cast<std::byte*>(tokens_grad), [&](size_t c, void* partials) {
    add_rows(s.exchange->row(), s.rows_of(c, static_cast<const std::byte*>(rows_grad)),
             s.chunks[c].received_rows(s.routing), partials, s.exchange->engine);
  });
}

}  // namespace moe::mpi
