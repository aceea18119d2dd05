"""The two collectives that rows travel by, counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ._memory import Buffer, row_bytes_of


@dataclass
class Bytes:
    """Payload that this rank gave to the collectives for other ranks, and got from them."""

    sent: int = 0
    received: int = 0


@dataclass
class Traffic:
    """Bytes by purpose. What a rank sends itself is not counted."""

    routing: Bytes = field(default_factory=Bytes)  # numbers of tokens, indices and probs
    rows: Bytes = field(default_factory=Bytes)  # rows to their experts' ranks
    partials: Bytes = field(default_factory=Bytes)  # partial sums back
    probs_grad: Bytes = field(default_factory=Bytes)  # partial gradients of probs back


class Transfer:
    """Rows under way. Keeps what is sent alive until they have arrived."""

    def __init__(self, rows: Tensor, works: list[Any], sent: Tensor) -> None:
        self._rows, self._works, self._sent = rows, works, sent

    def wait(self) -> Tensor:
        """Give the rows once they are there; RuntimeError where a rank died or time is up."""
        for work in self._works:
            work.wait()
        return self._rows


class Wire:
    """A process group. Rows travel as bytes: no backend has to know their dtype."""

    def __init__(self, group: dist.ProcessGroup | None) -> None:
        self.group = group if group is not None else dist.group.WORLD
        self.rank, self.num_ranks = dist.get_rank(self.group), dist.get_world_size(self.group)
        if self.rank < 0:
            raise ValueError(f"group: rank {dist.get_rank()} of all is no member of it")

    def gather_numbers(self, numbers: list[int], traffic: Bytes) -> list[list[int]]:
        """Give every rank's numbers, by rank."""
        mine = torch.tensor(numbers, dtype=torch.int64)
        rows = self.all_gather(mine[None], [1] * self.num_ranks, traffic).wait()
        return rows.tolist()

    def all_gather(
        self, mine: Tensor, counts: list[int], traffic: Bytes, incoming: Buffer | None = None
    ) -> Transfer:
        """Bring `counts[r]` rows of every rank r to all ranks, one rank's behind another's."""
        mine = mine.contiguous()
        rows = (incoming or Buffer()).rows(sum(counts), mine)
        row_bytes = row_bytes_of(rows)
        traffic.sent += len(mine) * row_bytes * (self.num_ranks - 1)
        traffic.received += (sum(counts) - len(mine)) * row_bytes
        if len(set(counts)) == 1:
            work = dist.all_gather_single(_bytes(rows), _bytes(mine), self.group, async_op=True)
            return Transfer(rows, [work], mine)
        # The collective takes one size only; a broadcast each sends exact rows.
        parts = rows.split(counts)
        parts[self.rank].copy_(mine)
        works = [
            dist.broadcast(_bytes(part), group=self.group, async_op=True, group_src=rank)
            for rank, part in enumerate(parts)
            if len(part)
        ]
        return Transfer(rows, works, mine)

    def all_to_all(
        self,
        outgoing: Tensor,
        to: list[int],
        from_: list[int],
        traffic: Bytes,
        incoming: Buffer | None = None,
    ) -> Transfer:
        """Send `to[r]` rows to each rank r, and give `from_[r]` rows of each."""
        rows = (incoming or Buffer()).rows(sum(from_), outgoing)
        row_bytes = row_bytes_of(rows)
        traffic.sent += (sum(to) - to[self.rank]) * row_bytes
        traffic.received += (sum(from_) - from_[self.rank]) * row_bytes
        work = dist.all_to_all_single(
            _bytes(rows), _bytes(outgoing), from_, to, group=self.group, async_op=True
        )
        return Transfer(rows, [work], outgoing)


def _bytes(rows: Tensor) -> Tensor:
    return rows.view(torch.uint8)
