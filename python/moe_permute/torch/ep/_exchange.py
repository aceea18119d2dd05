"""The exchange: tokens to their experts' ranks and partial sums back, with gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from moe_permute import _native

from ._agreement import FORMS, check_agreement
from ._calls import agree, check_routing, check_tensor
from ._chunk import Chunk, Routing, make_chunk
from ._memory import Lane, fresh_rows
from ._wire import Bytes, Traffic, Transfer, Wire


class ExpertRows(NamedTuple):
    """The rows [begin, end) that came for one expert, in the order of their slots."""

    expert: int
    begin: int
    end: int


class ExpertExchange:
    """Brings the tokens of all ranks of a group to their experts, and the results back.

    Args:
        num_experts: E.
        top_k: K, experts that a token names.
        hidden_size: H, the length of a token.
        dtype: of tokens, rows, partial sums and their gradients: a float of torch.
        probs_dtype: of the weights; None: no weights, all are 1.
        group: the process group; None: the default one.
        form: "all-to-all": a token goes once to each rank that owns one of its experts, and one
            partial sum comes back from each; exact rows, no padding. "all-gather": every rank gets
            all tokens, and sends a partial sum of each to its owner.
        num_chunks: each rank's tokens are cut into so many pieces of nearly equal size; piece c of
            all ranks is exchanged at once while piece c - 1 is permuted. Rows lie piece by piece.

    Raises:
        ValueError: on every rank, where an argument is invalid or ranks disagree: it says which
            argument, and what which rank has.

    Partial sums travel in `dtype`; the token's owner adds them in float32 (float64 for float64) in
    rank order and rounds once, so results are deterministic, and the same in both forms.

    `traffic` counts payload bytes since construction.
    """

    def __init__(
        self,
        num_experts: int,
        top_k: int,
        hidden_size: int,
        *,
        dtype: torch.dtype = torch.float32,
        probs_dtype: torch.dtype | None = torch.float32,
        group: dist.ProcessGroup | None = None,
        form: str = "all-to-all",
        num_chunks: int = 1,
    ) -> None:
        self.num_experts, self.top_k, self.hidden_size = num_experts, top_k, hidden_size
        self.dtype, self.probs_dtype = dtype, probs_dtype
        self.form, self.num_chunks = form, num_chunks
        self.traffic = Traffic()
        self.lanes = Lane(), Lane()
        self.wire = Wire(group)
        check_agreement(self)

    def route(self, indices: Tensor, probs: Tensor | None = None) -> RoutedTokens:
        """Gather where all tokens go.

        Args:
            indices: [T, K] of this rank, int32 or int64; T may differ between ranks and be 0. A
                slot whose id is not in [0, E) is not routed: it adds zero and gets zero gradients.
            probs: [T, K], the weights; gradients reach them through `RoutedTokens.combine`.
        """
        probs, num_tokens = agree(
            self, "indices, probs", probs, lambda: check_routing(self, indices, probs)
        )
        traffic = self.traffic.routing
        if indices.dtype != torch.int32:
            indices = indices.masked_fill(indices >= self.num_experts, -1).clamp(min=-1).int()
        all_indices = self.wire.all_gather(indices, num_tokens, traffic).wait()
        all_probs = None
        if probs is not None:
            all_probs = self.wire.all_gather(probs.detach(), num_tokens, traffic).wait()
        routing = Routing(self.wire.rank, self.num_experts, num_tokens, all_indices, all_probs)
        return RoutedTokens(self, routing, probs)


class RoutedTokens:
    """One routing of the tokens of all ranks, as this rank sees it.

    Attributes:
        num_rows: R, the rows that come to this rank.
        rows_of_experts: for each chunk, the number of rows of each of this rank's experts. Rows lie
            chunk by chunk, in each chunk by expert.
    """

    def __init__(self, exchange: ExpertExchange, routing: Routing, probs: Tensor | None) -> None:
        self._exchange, self._probs = exchange, probs
        self._own_experts = routing.own_experts()
        self.num_rows = 0
        self._chunks: list[Chunk] = []
        for c in range(exchange.num_chunks):
            gathers = exchange.form == FORMS[0]
            chunk = make_chunk(routing, gathers, c, exchange.num_chunks, self.num_rows)
            self.num_rows = chunk.rows.stop
            self._chunks.append(chunk)
        self._num_tokens = routing.num_tokens[routing.rank]
        self.rows_of_experts = [chunk.received.rows_of_experts for chunk in self._chunks]

    @property
    def experts(self) -> list[ExpertRows]:
        """This rank's experts that have rows, chunk by chunk."""
        experts, row = [], 0
        for counts in self.rows_of_experts:
            for expert, count in zip(self._own_experts, counts, strict=True):
                if count:
                    experts.append(ExpertRows(expert, row, row + count))
                row += count
        return experts

    def dispatch(self, tokens: Tensor) -> Tensor:
        """Bring tokens [T, H] to their experts: this rank's rows [R, H]."""
        return _Dispatch.apply(self._agreed("tokens", tokens, self._num_tokens), self)

    def combine(self, rows: Tensor) -> Tensor:
        """Bring the experts' rows [R, H] back to their tokens [T, H], weighted and added up."""
        return _Combine.apply(self._agreed("rows", rows, self.num_rows), self._probs, self)

    def _agreed(self, name: str, tensor: Tensor, num_rows: int) -> Tensor:
        exchange = self._exchange
        agreed, _ = agree(
            exchange, name, tensor, lambda: check_tensor(exchange, name, tensor, num_rows)
        )
        return agreed

    # --- what forward and backward are made of ----------------------------------------------------

    def _arriving(self, tokens: Tensor) -> Iterator[tuple[Chunk, Tensor]]:
        """Send tokens to their experts' ranks, and give those that come here chunk by chunk."""
        return self._pipelined(lambda chunk, lane: self._send(chunk, tokens, lane))

    def _send(self, chunk: Chunk, tokens: Tensor, lane: Lane) -> Transfer:
        wire, own, traffic = self._exchange.wire, chunk.own, self._exchange.traffic.rows
        mine = tokens[own.tokens]
        if own.ranks is None:
            return wire.all_gather(mine, chunk.received.counts, traffic, lane.incoming)
        copies = lane.outgoing.rows(own.num_copies, mine)
        _native.permute(
            mine, own.ranks, None, (0, own.num_copies), wire.num_ranks,
            (copies, None, None), False, True,
        )  # fmt: skip
        return wire.all_to_all(copies, own.counts, chunk.received.counts, traffic, lane.incoming)

    def _send_partials(
        self, chunk: Chunk, partials: Tensor, traffic: Bytes, lane: Lane | None = None
    ) -> Transfer:
        wire, incoming = self._exchange.wire, None if lane is None else lane.incoming
        return wire.all_to_all(partials, chunk.received.counts, chunk.own.counts, traffic, incoming)

    def _collect(self, rows: Tensor, write_partials: Callable[[Chunk, Tensor], Any]) -> Tensor:
        """Make each chunk's partial sums of `rows`, and the sums of those that come here."""
        traffic = self._exchange.traffic.partials

        def start(chunk: Chunk, lane: Lane) -> Transfer:
            partials = lane.outgoing.rows(sum(chunk.received.counts), rows)
            write_partials(chunk, partials)
            return self._send_partials(chunk, partials, traffic, lane)

        out = fresh_rows(self._num_tokens, rows)
        for chunk, partials in self._pipelined(start):
            _add(chunk, partials, out)
        return out

    def _pipelined(
        self, start: Callable[[Chunk, Lane], Transfer]
    ) -> Iterator[tuple[Chunk, Tensor]]:
        """Start each chunk before the one in front of it is worked on."""
        under_way: tuple[Chunk, Transfer] | None = None
        for c, chunk in enumerate(self._chunks):
            started = chunk, start(chunk, self._exchange.lanes[c % 2])
            if under_way is not None:
                yield under_way[0], under_way[1].wait()
            under_way = started
        if under_way is not None:
            yield under_way[0], under_way[1].wait()


def _add(chunk: Chunk, partials: Tensor, out: Tensor) -> None:
    """Write the sums of a chunk's partial sums, in rank order, to the chunk's tokens of `out`."""
    own = chunk.own
    _native.permute_grad(
        partials, own.places, own.width, None, (0, own.num_copies),
        (out[own.tokens], None), False, True,
    )  # fmt: skip


class _Dispatch(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tokens: Tensor, routed: RoutedTokens) -> Tensor:
        ctx.routed = routed
        rows = fresh_rows(routed.num_rows, tokens)
        num_experts = routed._exchange.num_experts
        for chunk, arrived in routed._arriving(tokens):
            received = chunk.received
            _native.permute(
                arrived, received.indices, None, received.window, num_experts,
                (rows[chunk.rows], None, None), False, True,
            )  # fmt: skip
        return rows

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, rows_grad: Tensor) -> Any:
        def write_partials(chunk: Chunk, partials: Tensor) -> None:
            received = chunk.received
            _native.permute_grad(
                rows_grad[chunk.rows], received.sorted_indices, received.indices.shape[1], None,
                received.window, (partials, None), False, True,
            )  # fmt: skip

        return ctx.routed._collect(rows_grad, write_partials), None


class _Combine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, probs: Tensor | None, routed: RoutedTokens) -> Tensor:
        ctx.routed = routed
        ctx.save_for_backward(rows if ctx.needs_input_grad[1] else None)

        def write_partials(chunk: Chunk, partials: Tensor) -> None:
            received = chunk.received
            _native.unpermute(
                rows[chunk.rows], received.sorted_indices, received.probs,
                received.indices.shape[1], received.window, partials, False, True,
            )  # fmt: skip

        return routed._collect(rows, write_partials)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, out_grad: Tensor) -> Any:
        (rows,) = ctx.saved_tensors
        routed: RoutedTokens = ctx.routed
        rows_grad = fresh_rows(routed.num_rows, out_grad)
        small = []
        for chunk, arrived in routed._arriving(out_grad):
            partials = _unpermute_grad(chunk, arrived, rows, rows_grad)
            if partials is not None:
                traffic = routed._exchange.traffic.probs_grad
                small.append((chunk, routed._send_partials(chunk, partials, traffic)))
        if rows is None:
            return rows_grad, None, None
        probs_grad = torch.empty_like(routed._probs, memory_format=torch.contiguous_format)
        for chunk, transfer in small:
            # One rank has a slot's expert, and all others give 0: the sum is a copy.
            _add(chunk, transfer.wait(), probs_grad)
        return rows_grad, probs_grad, None


def _unpermute_grad(
    chunk: Chunk, out_grad: Tensor, rows: Tensor | None, rows_grad: Tensor
) -> Tensor | None:
    """Write a chunk's part of `rows_grad`, and give its part of the probs' where rows are given."""
    received = chunk.received
    part = None if rows is None else rows[chunk.rows]
    _, probs_grad = _native.unpermute_grad(
        out_grad, received.sorted_indices, part, received.probs, received.indices.shape[1],
        received.window, (rows_grad[chunk.rows], None), False, True,
    )  # fmt: skip
    return probs_grad
