#!/usr/bin/env python3
"""Permute, unpermute and their backward together, beside the usual eager PyTorch code.

usage: .venv/bin/python bench/torch_round_trip.py [options]   (see scripts/setup --with-frameworks)

Three contestants, in one process and on the same threads, take turns; each figure is a median:
  fresh   moe_permute.torch with autograd: every result is a new tensor
  reused  the four operators of moe_permute with `out=`: results are written over the last round's
  plain   argsort twice, index_select, index_add, with autograd: every result is a new tensor
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Threads of PyTorch's pool spin for some milliseconds after their work, on processors that the next
# contestant then lacks: let them fall asleep before the clock runs.
CALM_SECONDS = 0.02
LEAST = {"fresh": 3.0, "reused": 8.0}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--models", nargs="+", default=["deepseek-v3", "qwen3-30b", "mixtral-8x7b"])
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float32"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument(
        "--check", action="store_true", help="measure nothing: fail where an answer is wrong"
    )
    return parser.parse_args()


ARGS = parse_arguments()
# Before the libraries are loaded: each reads its number of threads once.
os.environ["MOE_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(ARGS.threads)
import moe_permute  # noqa: E402
import torch  # noqa: E402
from moe_permute.torch import moe_token_permute, moe_token_unpermute  # noqa: E402

Grads = tuple[torch.Tensor, ...]


@dataclass
class Case:
    name: str
    tokens: torch.Tensor
    probs: torch.Tensor
    indices: torch.Tensor
    direction: torch.Tensor  # the gradient of the result

    @property
    def top_k(self) -> int:
        return self.indices.shape[1]


def make_case(model: dict, dtype_name: str) -> Case:
    dtype, generator = getattr(torch, dtype_name), torch.Generator().manual_seed(1)
    scores = torch.rand(ARGS.tokens, model["num_experts"], generator=generator)
    top = scores.topk(model["top_k"])
    shape = ARGS.tokens, model["hidden_size"]
    tokens, direction = (torch.randn(shape, generator=generator).to(dtype) for _ in range(2))
    name = f"{model['name']}/T{ARGS.tokens}/{dtype_name}"
    probs = top.values.to(dtype).requires_grad_()
    return Case(name, tokens.requires_grad_(), probs, top.indices, direction)


# --- contestants: each gives the result and the gradients of tokens and probs ---------------------


def fresh(case: Case) -> Grads:
    rows, sorted_indices, _ = moe_token_permute(case.tokens, case.indices)
    out = moe_token_unpermute(rows, sorted_indices, case.probs)
    return out, *torch.autograd.grad(out, (case.tokens, case.probs), case.direction)


def plain(case: Case) -> Grads:
    order = torch.argsort(case.indices.flatten(), stable=True)
    sorted_indices = torch.argsort(order)
    rows = case.tokens.index_select(0, order // case.top_k)

    weighted = rows.index_select(0, sorted_indices) * case.probs.reshape(-1, 1)
    of_slot = torch.arange(len(case.tokens)).repeat_interleave(case.top_k)
    out = torch.zeros_like(case.tokens).index_add(0, of_slot, weighted)
    return out, *torch.autograd.grad(out, (case.tokens, case.probs), case.direction)


def reused(case: Case) -> Callable[[], Grads]:
    tokens, probs, indices = case.tokens.detach(), case.probs.detach(), case.indices
    rows, sorted_indices, _ = forth = moe_permute.permute(tokens, indices)
    out = moe_permute.unpermute(rows, sorted_indices, probs)
    back = moe_permute.unpermute_grad(case.direction, sorted_indices, rows, probs)
    last = moe_permute.permute_grad(back[0], sorted_indices, case.top_k)

    def run() -> Grads:
        moe_permute.permute(tokens, indices, out=forth)
        moe_permute.unpermute(rows, sorted_indices, probs, out=out)
        moe_permute.unpermute_grad(case.direction, sorted_indices, rows, probs, out=back)
        moe_permute.permute_grad(back[0], sorted_indices, case.top_k, out=last)
        return out, last[0], back[1]

    return run


# --- measuring ------------------------------------------------------------------------------------


def timed(run: Callable[[], Grads]) -> float:
    time.sleep(CALM_SECONDS)
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def check(runs: dict[str, Callable[[], Grads]], dtype: torch.dtype) -> None:
    """All contestants must say the same, as far as the dtype allows."""
    results = {name: run() for name, run in runs.items()}
    for name in ("fresh", "reused"):
        for got, want in zip(results[name], results["plain"], strict=True):
            largest = want.float().abs().max()
            error = ((got.float() - want.float()).abs().max() / largest).item()
            if not error < 16 * torch.finfo(dtype).eps:
                sys.exit(f"{name}: off by {error:.1e} of the largest value")


def contestants(case: Case) -> dict[str, Callable[[], Grads]]:
    return {"fresh": lambda: fresh(case), "plain": lambda: plain(case), "reused": reused(case)}


def measure(case: Case) -> dict:
    runs = contestants(case)
    check(runs, case.tokens.dtype)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ARGS.rounds):
        for name, run in runs.items():
            times[name].append(timed(run))
    milliseconds = {name: statistics.median(values) * 1e3 for name, values in times.items()}
    speedups = {name: milliseconds["plain"] / milliseconds[name] for name in LEAST}
    return {"name": case.name, "milliseconds": milliseconds, "speedups": speedups}


def cases() -> Iterator[Case]:
    models = json.loads((ROOT / "bench/shapes.json").read_text(encoding="utf-8"))["models"]
    for model in models:
        if model["name"] in ARGS.models:
            for dtype_name in ARGS.dtypes:
                yield make_case(model, dtype_name)


def check_all() -> int:
    names = []
    for case in cases():
        check(contestants(case), case.tokens.dtype)
        names.append(case.name)
    print(f"{len(names)} cases, all answers right")
    return 0 if names else 1


def main() -> int:
    torch.set_num_threads(ARGS.threads)
    return check_all() if ARGS.check else compare()


def compare() -> int:
    print(f"PyTorch {torch.__version__}, {ARGS.threads} threads")
    results, num_missed = [], 0
    for case in cases():
        result = measure(case)
        results.append(result)
        ms, speedups = result["milliseconds"], result["speedups"]
        missed = [name for name, least in LEAST.items() if speedups[name] < least]
        num_missed += len(missed)
        print(
            f"{case.name:32} plain {ms['plain']:8.1f} ms"
            + "".join(f" | {name} {ms[name]:7.1f} ms, {speedups[name]:5.1f}x" for name in LEAST)
            + (f"  below what is asked: {', '.join(missed)}" if missed else ""),
            flush=True,
        )
    if ARGS.json:
        figures = {"torch": torch.__version__, "threads": ARGS.threads, "results": results}
        ARGS.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 1 if num_missed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
