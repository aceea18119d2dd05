#!/usr/bin/env python3
"""moe_permute.torch.ep beside the same exchange in plain PyTorch, on processes of this machine.

usage: exchange_torch.py [--ranks N] [--tokens T] [--hidden H] [--experts E] [--top-k K]

Each line: payload of rows that a rank sends there and back in a forward and its backward, the time
of both, and the processor's time for the same without communication: each collective gives at once
what it gave before, so what is left is the permutation and the sums, with the routing and what
Python takes. That counts the rank's own work alone, also where ranks share a processor.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import tempfile
import time
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from moe_permute.torch import moe_token_permute, moe_token_unpermute
from moe_permute.torch.ep import ExpertExchange
from moe_permute.torch.ep._wire import Transfer
from torch import Tensor


ALONE = "no exchange at all"


class Tape:
    """What collectives gave, in their order, to be given again without communication."""

    def __init__(self) -> None:
        self.recorded: list = []
        self.played: int | None = None  # None while recording

    def play(self, collective):
        if self.played is None:
            self.recorded.append(collective())
            return self.recorded[-1]
        self.played += 1
        return self.recorded[(self.played - 1) % len(self.recorded)]


class TapedWire:
    """An exchange's wire on a tape."""

    def __init__(self, wire, tape: Tape) -> None:
        self.wire, self.tape = wire, tape
        self.rank, self.num_ranks = wire.rank, wire.num_ranks

    def gather_numbers(self, *args):
        return self.tape.play(lambda: self.wire.gather_numbers(*args))

    def all_gather(self, *args) -> Transfer:
        return Transfer(
            self.tape.play(lambda: self.wire.all_gather(*args).wait().clone()), [], None
        )

    def all_to_all(self, *args) -> Transfer:
        return Transfer(
            self.tape.play(lambda: self.wire.all_to_all(*args).wait().clone()), [], None
        )


def send(rows: Tensor, to: list[int], from_: list[int]) -> Tensor:
    out = rows.new_empty((sum(from_), rows.shape[1]))
    dist.all_to_all_single(out.view(torch.uint8), rows.view(torch.uint8), from_, to)
    return out


class PlainExchange(torch.autograd.Function):
    """Rows to ranks and back by all_to_all_single, as one writes it with autograd in torch."""

    @staticmethod
    def forward(ctx, rows: Tensor, to: list[int], from_: list[int], tape: Tape | None) -> Tensor:
        ctx.args = from_, to, tape
        return play(tape, lambda: send(rows, to, from_))

    @staticmethod
    def backward(ctx, grad: Tensor):
        to, from_, tape = ctx.args
        return play(tape, lambda: send(grad.contiguous(), to, from_)), None, None, None


def play(tape: Tape | None, collective):
    return collective() if tape is None else tape.play(collective)


def plain(
    tokens: Tensor, indices: Tensor, probs: Tensor, num_experts: int, tape: Tape | None
) -> Tensor:
    """Every slot's copy of its token goes to its expert's rank; weighted sums at the owner."""
    n, top_k = dist.get_world_size(), indices.shape[1]
    order = indices.flatten().argsort(stable=True)
    per_expert = torch.bincount(indices.flatten(), minlength=num_experts)
    counts = [num_experts // n] * n
    experts_there = play(tape, lambda: send(per_expert[:, None], counts, counts))
    to = per_expert.view(n, -1).sum(1).tolist()
    there = experts_there.view(n, -1)
    from_ = there.sum(1).tolist()
    arrived = PlainExchange.apply(tokens[order // top_k], to, from_, tape)
    # By rank and expert, to by expert.
    expert = torch.arange(there.shape[1]).repeat(n).repeat_interleave(there.flatten())
    by_expert = expert.argsort(stable=True)
    rows = arrived[by_expert]
    back = torch.empty_like(by_expert)
    back[by_expert] = torch.arange(len(back))
    returned = PlainExchange.apply(rows[back], from_, to, tape)
    slots = torch.empty_like(order)
    slots[order] = torch.arange(len(order))
    weighted = returned[slots].view(len(tokens), top_k, -1) * probs[..., None].to(tokens.dtype)
    return weighted.sum(1)


def work(rank: int, options: argparse.Namespace, store: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=options.ranks
    )
    random = torch.Generator().manual_seed(rank)
    scores = torch.rand(options.tokens, options.experts, generator=random)
    indices = scores.topk(options.top_k).indices
    probs = torch.full(indices.shape, 1 / options.top_k)
    tokens = torch.randint(-4, 5, (options.tokens, options.hidden), generator=random)
    tokens = tokens.to(getattr(torch, options.dtype))
    num_experts = options.experts
    versions = {
        "plain torch": lambda x, p, tape: plain(x, indices, p, num_experts, tape),
        ALONE: lambda x, p, _: alone(x, indices, p),
    }
    exchanges = {}
    for form in ("all-gather", "all-to-all"):
        for num_chunks in (1, 4):
            exchange = ExpertExchange(
                num_experts, options.top_k, options.hidden,
                dtype=tokens.dtype, form=form, num_chunks=num_chunks,
            )  # fmt: skip
            name = f"{form}, {num_chunks} chunks"
            exchanges[name] = exchange
            versions[name] = functools.partial(forward, exchange, indices)
    measured = {name: Measured() for name in versions}
    for name, version in versions.items():
        step(version, tokens, probs, measured[name].tape, time.perf_counter)
        measured[name].tape.played = 0
    for _ in range(options.rounds + 1):
        for name, version in versions.items():
            clock, tape = time.perf_counter, measured[name].tape
            measured[name].whole.append(step(version, tokens, probs, None, clock))
            measured[name].local.append(step(version, tokens, probs, tape, time.process_time))
    if rank == 0:
        report(measured, exchanges, options)
    dist.destroy_process_group()


@dataclass
class Measured:
    """Seconds of steps with communication, and of the processor without; the first do not count."""

    tape: Tape = field(default_factory=Tape)
    whole: list[float] = field(default_factory=list)
    local: list[float] = field(default_factory=list)


def alone(tokens: Tensor, indices: Tensor, probs: Tensor) -> Tensor:
    """Each rank permutes its own tokens for all experts: as many rows as come by an exchange."""
    rows, sorted_indices, _ = moe_token_permute(tokens, indices)
    return moe_token_unpermute(rows, sorted_indices, probs)


def forward(
    exchange: ExpertExchange, indices: Tensor, tokens: Tensor, probs: Tensor, tape: Tape | None
) -> Tensor:
    wire = exchange.wire
    if tape is not None:
        exchange.wire = TapedWire(getattr(wire, "wire", wire), tape)
    elif isinstance(wire, TapedWire):
        exchange.wire = wire.wire
    routed = exchange.route(indices, probs)
    return routed.combine(routed.dispatch(tokens))


def step(version, tokens: Tensor, probs: Tensor, tape: Tape | None, clock) -> float:
    """Forward and backward through experts that change nothing; the answer is checked."""
    leaf, weights = tokens.clone().requires_grad_(), probs.clone().requires_grad_()
    dist.barrier()
    start = clock()
    out = version(leaf, weights, tape)
    out.backward(tokens)
    seconds = clock() - start
    assert torch.equal(out, tokens) and torch.equal(leaf.grad, tokens)
    return seconds


def report(measured: dict[str, Measured], exchanges, options: argparse.Namespace) -> None:
    row_bytes = options.hidden * getattr(torch, options.dtype).itemsize
    plain_bytes = 4 * options.tokens * options.top_k * row_bytes
    plain_bytes = plain_bytes * (options.ranks - 1) // options.ranks
    for name, times in measured.items():
        sent = 0 if name == ALONE else plain_bytes
        if name in exchanges:  # counted in each step with communication, and in the recorded one
            traffic = exchanges[name].traffic
            sent = (traffic.rows.sent + traffic.partials.sent) // (len(times.whole) + 1)
        whole, local = (statistics.median(t[1:]) * 1e3 for t in (times.whole, times.local))
        print(
            f"{options.ranks} ranks  {name:22} {sent / 1e6:8.2f} MB  {whole:8.1f} ms,"
            f" without communication {local:8.1f} ms of the processor"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=1024, help="of each rank")
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--experts", type=int, default=64)
    parser.add_argument("--top-k", type=int, default=8, help="a power of two")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.environ.setdefault("MOE_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        # Forked: this process has imported PyTorch, and has run nothing yet.
        args = options, f"{folder}/store"
        mp.start_processes(work, args, options.ranks, start_method="fork")


if __name__ == "__main__":
    main()
