#!/usr/bin/env python3
"""What a small call costs in eager PyTorch, by the roads that lead to an operator with gradients.

usage: .venv/bin/python bench/torch_overhead.py [--rounds N]   (see scripts/setup --with-frameworks)

All roads run one kernel and one backward, on the same tensors; each round times all in turn, and a
figure is the best of all rounds, in microseconds: without gradients, with a graph recorded, and
with the backward (torch.autograd.grad, whose own cost shows in the line `multiplication`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from moe_permute.torch import _operators, moe_token_permute
from python_overhead import SMALL, Case, load_library

BATCH = 10


def kernel_and_autograd() -> tuple[Any, Any, Any]:
    return _operators._permute_kernel, _operators._permute_save, _operators._permute_backward


def with_custom_op() -> Any:
    kernel, save, backward = kernel_and_autograd()
    schema = "(Tensor t, Tensor i, Tensor? p, SymInt[]? r) -> (Tensor, Tensor, Tensor)"
    op = torch.library.custom_op("moe_bench::permute", kernel, mutates_args=(), schema=schema)
    op.register_autograd(backward, setup_context=save)
    return op


def with_function_over_op() -> Any:
    _, save, backward = kernel_and_autograd()
    overload = torch.ops.moe_permute.permute.default

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                output = overload(*args)
            save(ctx, args, output)
            return output

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return backward(ctx, *gradients)

    return Function.apply


def roads() -> dict[str, Callable[..., Any]]:
    """Name -> a call of (tokens, indices, probs)."""
    custom_op, over_op = with_custom_op(), with_function_over_op()
    overload = torch.ops.moe_permute.permute.default
    return {
        "moe_token_permute": moe_token_permute,
        "autograd.Function over define/impl": lambda t, i, p: over_op(t, i, p, None),
        "define/impl, register_autograd": lambda t, i, p: overload(t, i, p, None),
        "custom_op, register_autograd": lambda t, i, p: custom_op(t, i, p, None),
        "multiplication": lambda t, i, p: (t * 1, i, p * 1),
    }


def measured(case: Case) -> dict[str, tuple[Callable[[], Any], ...]]:
    """Name -> the calls without gradients, with a graph, and with the backward."""
    tokens, indices, probs = (torch.from_numpy(a) for a in case.inputs["permute"])
    leaves = tokens.clone().requires_grad_(), probs.clone().requires_grad_()

    def calls(road: Callable[..., Any]) -> tuple[Callable[[], Any], ...]:
        def forward() -> Any:
            return road(leaves[0], indices, leaves[1])

        directions = [torch.ones_like(output) for output in (forward()[0], forward()[2])]

        def both() -> Any:
            rows, _, row_probs = forward()
            torch.autograd.grad((rows, row_probs), leaves, directions)

        return lambda: road(tokens, indices, probs), forward, both

    return {name: calls(road) for name, road in roads().items()}


def best_times(
    calls: dict[str, tuple[Callable[[], Any], ...]], rounds: int
) -> dict[str, list[float]]:
    best = {name: [float("inf")] * 3 for name in calls}
    for _ in range(rounds):
        for name, ways in calls.items():
            for number, way in enumerate(ways):
                begin = time.perf_counter()
                for _ in range(BATCH):
                    way()
                seconds = (time.perf_counter() - begin) / BATCH
                best[name][number] = min(best[name][number], seconds * 1e6)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    case = Case(*SMALL)
    in_cpp = min(case.in_cpp(load_library(), "permute", True, 100) for _ in range(rounds)) * 1e6
    print(f"{'':36}no gradient   recorded   and backward")
    print(f"{'C++: plan, bind, run':36}{in_cpp:8.1f} us")
    for name, times in best_times(measured(case), rounds).items():
        print(f"{name:36}{times[0]:8.1f} us{times[1]:8.1f} us{times[2]:11.1f} us")


if __name__ == "__main__":
    main()
