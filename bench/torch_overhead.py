#!/usr/bin/env python3
"""What a small call costs in eager PyTorch, by the roads that lead to an operator with gradients.

usage: .venv/bin/python bench/torch_overhead.py [--tokens T] [--rounds N]
       (see scripts/setup --with-frameworks)

All roads run one kernel and one backward, on the same tensors, of T tokens, 2 experts each and 64
floats; each round times all in turn. Figures are microseconds, best and median of all rounds:
of a call without gradients, of one that records a graph, and of the backward alone
(torch.autograd.grad, whose own cost shows in the line `multiplication`).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import moe_permute
import torch
from moe_permute.torch import _operators, moe_token_permute, moe_token_unpermute
from python_overhead import Case, load_library

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


def ways_of(
    call: Callable[..., Any], inputs: tuple[torch.Tensor, ...]
) -> tuple[Callable[[], Any], ...]:
    """Give the calls without gradients, with a graph, and of the backward alone."""
    first, indices, probs = inputs
    leaves = first.clone().requires_grad_(), probs.clone().requires_grad_()

    def forward() -> Any:
        return call(leaves[0], indices, leaves[1])

    outputs = forward()
    outputs = outputs[::2] if isinstance(outputs, tuple) else (outputs,)
    directions = [torch.ones_like(output) for output in outputs]

    def backward() -> Any:
        return torch.autograd.grad(outputs, leaves, directions, retain_graph=True)

    return lambda: call(first, indices, probs), forward, backward


def measured(case: Case) -> dict[str, tuple[Callable[[], Any], ...]]:
    """Name -> the ways to call it."""
    there, back = (
        tuple(torch.from_numpy(a) for a in case.inputs[name]) for name in ("permute", "unpermute")
    )
    ways = {name: ways_of(road, there) for name, road in roads().items()}
    return {"moe_token_unpermute": ways_of(moe_token_unpermute, back)} | ways


def times_of(
    calls: dict[str, tuple[Callable[[], Any], ...]], rounds: int
) -> dict[str, list[list[float]]]:
    """Microseconds of all rounds, of each way of each call."""
    times: dict[str, list[list[float]]] = {name: [[], [], []] for name in calls}
    for _ in range(rounds):
        for name, ways in calls.items():
            for number, way in enumerate(ways):
                begin = time.perf_counter()
                for _ in range(BATCH):
                    way()
                times[name][number].append((time.perf_counter() - begin) / BATCH * 1e6)
    return times


def figures(times: list[float]) -> str:
    return f"{min(times):9.1f} /{statistics.median(times):6.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    torch.set_num_threads(1)
    moe_permute.set_num_threads(1)
    case = Case(options.tokens, 2, 64, "float32")
    library = load_library()
    library.moe_bench_set_num_threads(1)
    print(f"{'best / median, us':36}     no gradient         recorded         backward")
    for name in ("permute", "unpermute"):
        in_cpp = [case.in_cpp(library, name, True, 100) * 1e6 for _ in range(options.rounds)]
        print(f"{'C++, plan, bind, run: ' + name:36}{figures(in_cpp)}")
    for name, times in times_of(measured(case), options.rounds).items():
        print(f"{name:36}" + " ".join(map(figures, times)))


if __name__ == "__main__":
    main()
