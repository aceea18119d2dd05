"""Which tokens of a chunk go where: arithmetic on the ids of all ranks' slots.

Every rank computes it from the same ids, so no rank has to be told.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from moe_permute import ep_range_of_rank, sort_indices


@dataclass(frozen=True)
class Routing:
    """The tokens of all ranks, one rank's behind another's."""

    rank: int  # this one
    num_experts: int
    num_tokens: list[int]  # [n]
    indices: Tensor  # [all tokens, K], int32
    probs: Tensor | None  # [all tokens, K]

    @property
    def num_ranks(self) -> int:
        return len(self.num_tokens)

    def first_expert(self, rank: int) -> int:
        return rank * self.num_experts // self.num_ranks

    def own_experts(self) -> range:
        return range(self.first_expert(self.rank), self.first_expert(self.rank + 1))


@dataclass(frozen=True)
class Received:
    """The M tokens of a chunk that come to this rank, from its own tokens too."""

    counts: list[int]  # [n]: how many are each rank's
    indices: Tensor  # [M, K]
    probs: Tensor | None  # [M, K]
    sorted_indices: Tensor  # [M * K]
    rows_of_experts: list[int]  # of this rank's experts
    window: tuple[int, int]

    @property
    def num_rows(self) -> int:
        return self.window[1] - self.window[0]


@dataclass(frozen=True)
class Own:
    """This rank's tokens of a chunk, and the ranks that send partial sums of them."""

    tokens: slice
    counts: list[int]  # [n]: how many partial sums each rank sends
    width: int  # W: at most so many ranks send one of a token
    ranks: Tensor | None  # [t, W]: the ranks a token goes to, ascending; None where to all
    places: Tensor  # [t * W]: of the partial sums, one rank's behind another's

    @property
    def num_copies(self) -> int:
        return sum(self.counts)


@dataclass(frozen=True)
class Chunk:
    """One piece of all ranks' tokens, as this rank sees it."""

    received: Received
    own: Own
    rows: slice  # among all of this rank's


def make_chunk(
    routing: Routing, all_gather: bool, c: int, num_chunks: int, first_row: int
) -> Chunk:
    received = _receive(routing, all_gather, c, num_chunks)
    tokens = _piece(routing.num_tokens[routing.rank], c, num_chunks)
    own = _from_all(routing, tokens) if all_gather else _from_owners(routing, tokens)
    return Chunk(received, own, slice(first_row, first_row + received.num_rows))


def _piece(num_tokens: int, c: int, num_chunks: int) -> slice:
    return slice(c * num_tokens // num_chunks, (c + 1) * num_tokens // num_chunks)


def _receive(routing: Routing, all_gather: bool, c: int, num_chunks: int) -> Received:
    experts = routing.own_experts()
    counts, indices, probs = [], [], []
    first = 0
    for num_tokens in routing.num_tokens:
        piece = _piece(num_tokens, c, num_chunks)
        tokens = slice(first + piece.start, first + piece.stop)
        first += num_tokens
        ids = routing.indices[tokens]
        comes: slice | Tensor = slice(None)
        if not all_gather:
            comes = ((ids >= experts.start) & (ids < experts.stop)).any(1)
        indices.append(ids[comes])
        counts.append(len(indices[-1]))
        if routing.probs is not None:
            probs.append(routing.probs[tokens][comes])
    return _sorted(routing, counts, torch.cat(indices), torch.cat(probs) if probs else None)


def _sorted(routing: Routing, counts: list[int], indices: Tensor, probs: Tensor | None) -> Received:
    sorted_indices, per_expert = sort_indices(indices, num_experts=routing.num_experts)
    assert per_expert is not None
    window = ep_range_of_rank(per_expert, routing.rank, routing.num_ranks)
    own = routing.own_experts()
    rows_of_experts = per_expert[own.start : own.stop].tolist()
    return Received(counts, indices, probs, sorted_indices, rows_of_experts, window)


def _from_all(routing: Routing, tokens: slice) -> Own:
    """Every rank gets every token, and sends a partial sum of it."""
    n, num_tokens = routing.num_ranks, tokens.stop - tokens.start
    places = torch.arange(n * num_tokens, dtype=torch.int32).view(n, num_tokens).t().reshape(-1)
    return Own(tokens, [num_tokens] * n, n, None, places)


def _from_owners(routing: Routing, tokens: slice) -> Own:
    """A token's partial sums are added in the order of its columns: ascending ranks."""
    n, first = routing.num_ranks, sum(routing.num_tokens[: routing.rank])
    ids = routing.indices[first + tokens.start : first + tokens.stop]
    width = min(ids.shape[1], n)
    ranks = _owners(routing, ids).sort(1).values
    again = torch.zeros_like(ranks, dtype=torch.bool)
    again[:, 1:] = ranks[:, 1:] == ranks[:, :-1]
    ranks = ranks.masked_fill(again, n).sort(1).values[:, :width].contiguous()
    places, counts = sort_indices(ranks, num_experts=n)
    assert counts is not None
    return Own(tokens, counts.tolist(), width, ranks, places)


def _owners(routing: Routing, ids: Tensor) -> Tensor:
    """Give the rank of each slot's expert; n, which is no rank, where it is not routed."""
    n, num_experts = routing.num_ranks, routing.num_experts
    per_rank = torch.tensor(
        [routing.first_expert(r + 1) - routing.first_expert(r) for r in range(n)]
    )
    owner = torch.repeat_interleave(torch.arange(n, dtype=torch.int32), per_rank)
    routed = (ids >= 0) & (ids < num_experts)
    return torch.where(routed, owner[ids.clamp(0, num_experts - 1).long()], n)
