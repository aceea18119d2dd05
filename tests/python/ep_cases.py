"""A layer over all ranks against the same layer computed naively by each rank for itself.

Expert e multiplies its rows element by element by the row e of a weight matrix: outputs and all
gradients are then sums of products, and the same sums of absolute values bound their rounding.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
import torch.distributed as dist
from moe_permute.torch.ep import ExpertExchange

FORMS = ("all-gather", "all-to-all")


@dataclass(frozen=True)
class Case:
    num_experts: int = 13
    top_k: int = 4
    hidden_size: int = 17
    dtype: torch.dtype = torch.float32
    probs_dtype: torch.dtype | None = torch.float32
    form: str = "all-to-all"
    num_chunks: int = 1
    counts: str = "uneven"
    choice: str = "random"
    integers: bool = True
    seed: int = 1


def token_counts(case, num_ranks):
    uneven = torch.randint(20, (num_ranks,), generator=generator(case)).tolist()
    return {
        "even": [8] * num_ranks,
        "uneven": uneven,
        "one empty": [0 if rank == num_ranks // 2 else 5 + rank for rank in range(num_ranks)],
        "only last": [21 if rank == num_ranks - 1 else 0 for rank in range(num_ranks)],
        "none": [0] * num_ranks,
    }[case.counts]


def generator(case):
    return torch.Generator().manual_seed(case.seed)


def values(case, shape, largest, dtype, random):
    if case.integers:
        return torch.randint(-largest, largest + 1, shape, generator=random).to(dtype)
    return (2 * torch.rand(shape, generator=random) - 1).to(dtype)


def choose(case, num_tokens, random):
    shape = num_tokens, case.top_k
    indices = torch.randint(case.num_experts, shape, generator=random)
    if case.choice == "one expert":
        return torch.full(shape, case.num_experts - 1)
    if case.choice == "unrouted":
        outside = torch.tensor([-1, case.num_experts, 2**31 - 1, 2**40, -(2**40)])
        others = outside[torch.randint(5, shape, generator=random)]
        return torch.where(torch.rand(shape, generator=random) < 0.3, others, indices)
    return indices


class Layer:
    """All ranks' tokens, and what goes with them."""

    def __init__(self, case, num_ranks):
        random = generator(case)
        self.case, self.counts = case, token_counts(case, num_ranks)
        num_tokens, hidden = sum(self.counts), (case.hidden_size,)
        self.indices = choose(case, num_tokens, random)
        probs_dtype = case.probs_dtype or torch.float32
        self.probs = values(case, self.indices.shape, 1, probs_dtype, random)
        if case.probs_dtype is None:
            self.probs = torch.ones_like(self.probs)
        self.tokens = values(case, (num_tokens, *hidden), 3, case.dtype, random)
        self.out_grad = values(case, (num_tokens, *hidden), 1, case.dtype, random)
        self.weights = values(case, (case.num_experts, *hidden), 2, case.dtype, random)

    def expected(self, magnitudes=False):
        """Output and gradients of tokens, probs and weights; or the sums of their magnitudes."""
        tensors = [self.tokens, self.probs, self.weights, self.out_grad]
        tensors = [t.double().abs() if magnitudes else t.double().clone() for t in tensors]
        tokens, probs, weights, out_grad = tensors
        for leaf in (tokens, probs, weights):
            leaf.requires_grad_()
        routed = (self.indices >= 0) & (self.indices < self.case.num_experts)
        rows = tokens[:, None, :] * weights[self.indices.where(routed, 0)]
        out = (rows * (probs * routed)[:, :, None]).sum(1)
        out.backward(out_grad)
        return [out.detach(), tokens.grad, probs.grad, weights.grad]

    def own(self, rank):
        return slice(sum(self.counts[:rank]), sum(self.counts[: rank + 1]))


def run(case, layer, rank):
    """One rank's part, and its payload."""
    own = layer.own(rank)
    exchange = ExpertExchange(
        case.num_experts,
        case.top_k,
        case.hidden_size,
        dtype=case.dtype,
        probs_dtype=case.probs_dtype,
        form=case.form,
        num_chunks=case.num_chunks,
    )
    tokens = layer.tokens[own].clone().requires_grad_()
    probs = layer.probs[own].clone().requires_grad_()
    weights = layer.weights.clone().requires_grad_()
    routed = exchange.route(layer.indices[own], None if case.probs_dtype is None else probs)
    rows = routed.dispatch(tokens)
    outputs = [rows[b:e] * weights[expert] for expert, b, e in routed.experts]
    out = routed.combine(torch.cat(outputs) if outputs else rows)
    out.backward(layer.out_grad[own])
    gradients = [tokens.grad, probs.grad, weights.grad]
    return [out.detach(), *gradients], exchange.traffic


def expected_traffic(case, layer, rank, num_ranks):
    """(sent, received) by purpose, from the model of docs/scaling.md."""
    owner = [
        next(r for r in range(num_ranks) if (r + 1) * case.num_experts // num_ranks > e)
        for e in range(case.num_experts)
    ]
    sent = received = 0
    ids = iter(layer.indices.tolist())
    for source, count in enumerate(layer.counts):
        for slots in itertools.islice(ids, count):
            to = {owner[e] for e in slots if 0 <= e < case.num_experts}
            to = set(range(num_ranks)) if case.form == "all-gather" else to
            sent += len(to - {source}) if source == rank else 0
            received += rank in to and source != rank
    own, others = layer.counts[rank], sum(layer.counts) - layer.counts[rank]
    prob = case.probs_dtype.itemsize if case.probs_dtype else 0
    slots, row = case.top_k * (4 + prob), case.hidden_size * case.dtype.itemsize
    agreed = 3 * 16  # in route, dispatch and combine
    return {
        "routing": (
            (num_ranks - 1) * (agreed + own * slots),
            (num_ranks - 1) * agreed + others * slots,
        ),
        "rows": (2 * sent * row, 2 * received * row),
        "partials": (2 * received * row, 2 * sent * row),
        "probs_grad": (received * case.top_k * prob, sent * case.top_k * prob),
    }


def check(case, rank, num_ranks, tolerance):
    layer = Layer(case, num_ranks)
    got, traffic = run(case, layer, rank)
    own, n = layer.own(rank), num_ranks
    experts = slice(rank * case.num_experts // n, (rank + 1) * case.num_experts // n)
    parts = [own, own, own, experts]
    wants, bounds = layer.expected(), layer.expected(magnitudes=True)
    names = ("out", "tokens", "probs", "weights")
    for name, have, want, bound, part in zip(names, got, wants, bounds, parts, strict=True):
        if name == "probs" and case.probs_dtype is None:
            continue
        if have is None:  # a weight that no row met
            have = torch.zeros_like(want)
        have = have[part] if name == "weights" else have
        assert not have.isnan().any(), (case, name)
        off = (have.double() - want[part]).abs() > tolerance * bound[part]
        assert not off.any(), (case, name, have[off][:3], want[part][off][:3])
    want_bytes = expected_traffic(case, layer, rank, num_ranks)
    for name, (sent, received) in want_bytes.items():
        bytes_ = getattr(traffic, name)
        assert (bytes_.sent, bytes_.received) == (sent, received), (case, name, bytes_)


def all_cases():
    counts = ("even", "uneven", "one empty", "only last", "none")
    choices = ("random", "one expert", "unrouted")
    seeds = itertools.count(1)
    for form, count, choice in itertools.product(FORMS, counts, choices):
        for num_chunks in (1, 3):
            seed = next(seeds)
            yield Case(form=form, counts=count, choice=choice, num_chunks=num_chunks, seed=seed), 0
    for form in FORMS:
        for num_experts, top_k in itertools.product((1, 2, 5, 64), (1, 2, 9)):
            yield Case(num_experts, top_k, 3, form=form, num_chunks=2, seed=next(seeds)), 0
        for dtype in (torch.float16, torch.bfloat16, torch.float64):
            probs = torch.float64 if dtype == torch.float64 else torch.float32
            for probs_dtype in (dtype, probs, None):
                yield (
                    Case(dtype=dtype, probs_dtype=probs_dtype, form=form, seed=next(seeds)),
                    0,
                )
        yield Case(form=form, num_chunks=40, seed=next(seeds)), 0
        for seed in range(4):
            yield Case(16, 4, 64, form=form, num_chunks=2, integers=False, seed=seed), 1e-6


def check_all(rank, num_ranks):
    num_cases = 0
    for case, tolerance in all_cases():
        check(case, rank, num_ranks, tolerance)
        num_cases += 1
    dist.barrier()
    return num_cases


def both_forms_agree(rank, num_ranks):
    for dtype in (torch.float32, torch.bfloat16):
        results = []
        for form, num_chunks in zip(FORMS, (1, 3), strict=True):
            case = Case(24, 6, 33, dtype, integers=False, form=form, num_chunks=num_chunks)
            results.append(run(case, Layer(case, num_ranks), rank)[0])
        for name, gathered, sent in zip(("out", "tokens", "probs"), *results, strict=False):
            assert torch.equal(gathered, sent), (dtype, name)
