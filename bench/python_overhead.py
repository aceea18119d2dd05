"""What a call costs from Python beside the same call from C++, in one process, on the same arrays.

usage: .venv/bin/python bench/python_overhead.py [--shapes] [--rounds N]
       (after scripts/setup; --with-frameworks for the figures of torch tensors)

Small arrays by default: what remains is the call itself. --shapes: training shapes instead, where
outputs that are given are compared with C++, and fresh ones show what their pages cost. Each round
times all ways in turn; a figure is the best of all rounds, a share of C++ the rounds' median.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import moe_permute as mp
import numpy as np

LIBRARY = Path(__file__).parents[1] / "build/release/bench/libbench_calls.so"
DTYPES = {"float32": 0, "float16": 1, "float64": 3}
OPERATORS = ("permute", "permute_grad", "unpermute", "unpermute_grad")
# Tokens, experts per token, hidden size, dtype.
SMALL = (8, 2, 16, "float32")
SHAPES = [(4096, 8, 2048, "float16"), (4096, 2, 4096, "float16"), (4096, 8, 2048, "float32")]


class Case:
    """Arrays of one problem and, for each operator, its inputs and its outputs."""

    def __init__(self, num_tokens: int, top_k: int, hidden_size: int, dtype: str) -> None:
        self.sizes = (num_tokens, top_k, hidden_size)
        self.dtype = dtype
        rng = np.random.default_rng(1)
        tokens = rng.standard_normal((num_tokens, hidden_size), np.float32).astype(dtype)
        probs = rng.random((num_tokens, top_k), np.float32)
        experts = rng.integers(0, 64, (num_tokens, top_k), np.int32)
        rows, ranks, row_probs = mp.permute(tokens, experts, probs)
        self.inputs: dict[str, tuple[Any, ...]] = {
            "permute": (tokens, experts, probs),
            "permute_grad": (rows, ranks, top_k, row_probs),
            "unpermute": (rows, ranks, probs),
            "unpermute_grad": (tokens, ranks, rows, probs),
        }
        self.outputs: dict[str, Any] = {name: self.call(name)() for name in OPERATORS}

    def call(self, name: str, out: Any = None, convert: Callable[..., Any] | None = None) -> Any:
        """Give the call of an operator, its arrays converted."""
        function = getattr(mp, name)
        inputs = self.inputs[name]
        if convert:
            inputs = tuple(convert(a) if isinstance(a, np.ndarray) else a for a in inputs)
        return lambda: function(*inputs, out=out)

    def in_cpp(self, library: Any, name: str, with_plan: bool, batch: int) -> float:
        outputs = self.outputs[name]
        arrays = [a for a in self.inputs[name] if isinstance(a, np.ndarray)]
        arrays += outputs if isinstance(outputs, tuple) else [outputs]
        addresses = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        op, dtype = OPERATORS.index(name), DTYPES[self.dtype]
        return library.moe_bench_call(op, dtype, *self.sizes, addresses, with_plan, 1, batch)


def load_library() -> Any:
    library = ctypes.CDLL(str(LIBRARY))
    number = ctypes.c_int64
    library.moe_bench_call.restype = ctypes.c_double
    library.moe_bench_call.argtypes = [
        ctypes.c_int, ctypes.c_int, number, number, number,
        ctypes.POINTER(ctypes.c_void_p), ctypes.c_bool, ctypes.c_int, ctypes.c_int,
    ]  # fmt: skip
    return library


def timed(call: Callable[[], Any], batch: int) -> float:
    begin = time.perf_counter()
    for _ in range(batch):
        call()
    return (time.perf_counter() - begin) / batch


Times = dict[str, list[float]]


def times_of(ways: dict[str, Callable[[], float]], rounds: int) -> Times:
    """Time all ways in turn, back and forth."""
    times: Times = {name: [] for name in ways}
    turn = list(ways.items())
    for _ in range(rounds):
        for name, way in turn:
            times[name].append(way())
        turn.reverse()
    return times


def best_of(times: Times) -> dict[str, float]:
    return {name: min(seconds) for name, seconds in times.items()}


def share(times: Times, name: str, of: str) -> float:
    """Give by how much one way takes longer, in the median of all rounds."""
    return statistics.median(a / b for a, b in zip(times[name], times[of], strict=True)) - 1


def torch_or_none() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


def measure(case: Case, name: str, library: Any, rounds: int, batch: int) -> Times:
    given, fresh = case.call(name, out=case.outputs[name]), case.call(name)
    ways: dict[str, Callable[[], float]] = {
        "C++ run": lambda: case.in_cpp(library, name, False, batch),
        "C++": lambda: case.in_cpp(library, name, True, batch),
        "NumPy out=": lambda: timed(given, batch),
        "NumPy": lambda: timed(fresh, batch),
    }
    torch = torch_or_none()
    if torch:
        convert = torch.from_numpy
        outputs = case.outputs[name]
        is_tuple = isinstance(outputs, tuple)
        out = tuple(map(convert, outputs)) if is_tuple else convert(outputs)
        torch_given, torch_fresh = case.call(name, out, convert), case.call(name, None, convert)
        ways["torch out="] = lambda: timed(torch_given, batch)
        ways["torch"] = lambda: timed(torch_fresh, batch)
    for way in ways.values():
        way()
    return times_of(ways, rounds)


def print_row(name: str, best: dict[str, float], unit: float, difference: str) -> None:
    figures = "".join(f"{seconds / unit:12.2f}" for seconds in best.values())
    print(f"{name:<16}{figures}   {difference}")


def show_small(library: Any, rounds: int) -> None:
    mp.set_num_threads(1)
    library.moe_bench_set_num_threads(1)
    case = Case(*SMALL)
    print("microseconds for", *SMALL)
    for name in OPERATORS:
        best = best_of(measure(case, name, library, rounds, 2000))
        if name == OPERATORS[0]:
            print(" " * 16 + "".join(f"{way:>12}" for way in best))
        over = {w: (t - best["C++"]) * 1e6 for w, t in best.items() if "C++" not in w}
        print_row(name, best, 1e-6, " ".join(f"{w} +{t:.2f}" for w, t in over.items()))


def show_shapes(library: Any, rounds: int) -> None:
    for shape in SHAPES:
        case = Case(*shape)
        print("milliseconds for", *shape)
        for name in OPERATORS:
            times = measure(case, name, library, rounds, 1)
            best = best_of(times)
            if name == OPERATORS[0]:
                print(" " * 16 + "".join(f"{way:>12}" for way in best))
            slower = share(times, "NumPy out=", "C++")
            print_row(name, best, 1e-3, f"out= {100 * slower:+.1f} % of C++")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", action="store_true")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    library = load_library()
    (show_shapes if options.shapes else show_small)(library, options.rounds)


if __name__ == "__main__":
    main()
