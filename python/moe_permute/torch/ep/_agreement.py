"""What is checked, and what is said of it: all ranks' arguments at set-up, tensors on each call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ._wire import Bytes

if TYPE_CHECKING:
    from ._exchange import ExpertExchange

FORMS = ("all-gather", "all-to-all")
_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
_NUMBERS = ("num_experts", "top_k", "hidden_size", "num_chunks")
# What each name may be; numbers stand for themselves. What is not in the list is -1.
_CHOICES: dict[str, tuple[Any, ...]] = {
    "dtype": _DTYPES,
    "probs_dtype": (*_DTYPES, None),
    "form": FORMS,
}


def check_agreement(exchange: ExpertExchange) -> None:
    """ValueError, the same on every rank, unless all ranks have the same valid arguments."""
    names = (*_NUMBERS, *_CHOICES)
    # All fields travel before any is judged: a rank that raises has exchanged as much as others.
    mine = [_code(name, getattr(exchange, name)) for name in names]
    ranks = exchange.wire.gather_numbers(mine, Bytes())
    for i, name in enumerate(names):
        for rank, values in enumerate(ranks):
            if values[i] != ranks[0][i]:
                raise ValueError(
                    f"{name}: rank {rank} has {_spell(name, values[i])}, but rank 0 has"
                    f" {_spell(name, ranks[0][i])}, and all ranks must agree"
                )
    for name in names:
        _check_valid(name, getattr(exchange, name))
    if exchange.probs_dtype is not None and (
        (exchange.dtype == torch.float64) != (exchange.probs_dtype == torch.float64)
    ):
        raise ValueError(
            f"probs_dtype: {exchange.probs_dtype}, but dtype is {exchange.dtype}: float64 goes with"
            " float64 only"
        )


def _code(name: str, value: Any) -> int:
    if name in _NUMBERS:
        return int(value)
    choices = _CHOICES[name]
    return choices.index(value) if value in choices else -1


def _spell(name: str, code: int) -> str:
    if name in _NUMBERS:
        return str(code)
    return str(_CHOICES[name][code]) if code >= 0 else "one that is not known"


def _check_valid(name: str, value: Any) -> None:
    if name in _NUMBERS:
        if not 1 <= value < 2**31:
            raise ValueError(f"{name}: {value}, but needs a number from 1 to {2**31 - 1}")
    elif value not in _CHOICES[name]:
        wanted = ", ".join(str(choice) for choice in _CHOICES[name])
        raise ValueError(f"{name}: {value}, but needs one of {wanted}")


def check_routing(exchange: ExpertExchange, indices: Tensor, probs: Tensor | None) -> None:
    if indices.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"indices: {indices.dtype}, but needs torch.int32 or torch.int64")
    if indices.dim() != 2 or indices.shape[1] != exchange.top_k:
        raise ValueError(f"indices: shape {list(indices.shape)}, but needs [T, {exchange.top_k}]")
    if (probs is None) != (exchange.probs_dtype is None):
        given = "missing" if probs is None else "given"
        raise ValueError(f"probs: {given}, but probs_dtype is {exchange.probs_dtype}")
    if probs is None:
        return
    if probs.dtype != exchange.probs_dtype:
        raise TypeError(f"probs: {probs.dtype}, but needs {exchange.probs_dtype}")
    if probs.shape != indices.shape:
        raise ValueError(f"probs: shape {list(probs.shape)}, but needs {list(indices.shape)}")


def check_tensor(exchange: ExpertExchange, name: str, tensor: Tensor, num_rows: int) -> None:
    if tensor.dtype != exchange.dtype:
        raise TypeError(f"{name}: {tensor.dtype}, but needs {exchange.dtype}")
    wanted = [num_rows, exchange.hidden_size]
    if list(tensor.shape) != wanted:
        raise ValueError(f"{name}: shape {list(tensor.shape)}, but needs {wanted}")
