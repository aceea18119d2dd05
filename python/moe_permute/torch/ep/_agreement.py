"""What all ranks must have in common, compared at set-up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ._wire import Bytes, Wire

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
    check_same(exchange.wire, {name: getattr(exchange, name) for name in names})
    for name in names:
        _check_valid(name, getattr(exchange, name))
    if exchange.probs_dtype is not None and (
        (exchange.dtype == torch.float64) != (exchange.probs_dtype == torch.float64)
    ):
        raise ValueError(
            f"probs_dtype: {exchange.probs_dtype}, but dtype is {exchange.dtype}: float64 goes with"
            " float64 only"
        )


def check_same(wire: Wire, arguments: dict[str, Any]) -> None:
    """ValueError, the same on every rank, unless all ranks have the same arguments."""
    # All travel before any is judged: a rank that raises has exchanged as much as others.
    mine = [_code(name, value) for name, value in arguments.items()]
    ranks = wire.gather_numbers(mine, Bytes())
    for i, name in enumerate(arguments):
        for rank, values in enumerate(ranks):
            if values[i] != ranks[0][i]:
                raise ValueError(
                    f"{name}: rank {rank} has {_spell(name, values[i])}, but rank 0 has"
                    f" {_spell(name, ranks[0][i])}, and all ranks must agree"
                )


def _code(name: str, value: Any) -> int:
    if name not in _CHOICES:
        return int(value)
    choices = _CHOICES[name]
    return choices.index(value) if value in choices else -1


def _spell(name: str, code: int) -> str:
    if name not in _CHOICES:
        return str(code)
    return str(_CHOICES[name][code]) if code >= 0 else "one that is not known"


def _check_valid(name: str, value: Any) -> None:
    if name not in _CHOICES:
        if not 1 <= value < 2**31:
            raise ValueError(f"{name}: {value}, but needs a number from 1 to {2**31 - 1}")
    elif value not in _CHOICES[name]:
        wanted = ", ".join(str(choice) for choice in _CHOICES[name])
        raise ValueError(f"{name}: {value}, but needs one of {wanted}")
