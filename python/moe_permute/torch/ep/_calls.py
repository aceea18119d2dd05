"""What a call is given on each rank: checked there, and heard of by all before they exchange it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from ._exchange import ExpertExchange

# What a rank says of its part.
_INVALID, _UNRECORDED, _CONSTANT, _WANTS_GRADIENT = range(4)


def agree(
    exchange: ExpertExchange, name: str, tensor: Tensor | None, check: Callable[[], int]
) -> tuple[Tensor | None, list[int]]:
    """Run this rank's check and hear of the others': where one raises, all raise.

    Gives `tensor` and what `check` gave on each rank. Where some rank's tensor wants a gradient,
    all take part in its exchange: the one given back wants one on all ranks.
    """
    error, mine = None, [_INVALID, 0]
    try:
        mine = [_state(tensor), check()]
    except Exception as caught:  # whatever it is, the others must hear of it
        error = caught
    ranks = exchange.wire.gather_numbers(mine, exchange.traffic.routing)
    if error is not None:
        raise error
    states = [state for state, _ in ranks]
    _check_states(name, states)
    if tensor is not None and _WANTS_GRADIENT in states and not tensor.requires_grad:
        tensor = tensor.detach().requires_grad_()
    return tensor, [number for _, number in ranks]


def _state(tensor: Tensor | None) -> int:
    if not torch.is_grad_enabled():
        return _UNRECORDED
    return _CONSTANT if tensor is None or not tensor.requires_grad else _WANTS_GRADIENT


def _check_states(name: str, states: list[int]) -> None:
    for rank, state in enumerate(states):
        if state == _INVALID:
            raise ValueError(f"{name}: invalid on rank {rank}, whose own error says why")
        if (state == _UNRECORDED) != (states[0] == _UNRECORDED):
            off, on = (rank, 0) if state == _UNRECORDED else (0, rank)
            raise ValueError(
                f"{name}: rank {off} records no gradients, but rank {on} does, and all ranks must"
                " agree"
            )


def check_routing(exchange: ExpertExchange, indices: Tensor, probs: Tensor | None) -> int:
    """Give the number of tokens."""
    if indices.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"indices: {indices.dtype}, but needs torch.int32 or torch.int64")
    if indices.dim() != 2 or indices.shape[1] != exchange.top_k:
        raise ValueError(f"indices: shape {list(indices.shape)}, but needs [T, {exchange.top_k}]")
    if (probs is None) != (exchange.probs_dtype is None):
        given = "missing" if probs is None else "given"
        raise ValueError(f"probs: {given}, but probs_dtype is {exchange.probs_dtype}")
    if probs is None:
        return len(indices)
    if probs.dtype != exchange.probs_dtype:
        raise TypeError(f"probs: {probs.dtype}, but needs {exchange.probs_dtype}")
    if probs.shape != indices.shape:
        raise ValueError(f"probs: shape {list(probs.shape)}, but needs {list(indices.shape)}")
    return len(indices)


def check_tensor(exchange: ExpertExchange, name: str, tensor: Tensor, num_rows: int) -> int:
    """Give the number of rows."""
    if tensor.dtype != exchange.dtype:
        raise TypeError(f"{name}: {tensor.dtype}, but needs {exchange.dtype}")
    wanted = [num_rows, exchange.hidden_size]
    if list(tensor.shape) != wanted:
        raise ValueError(f"{name}: shape {list(tensor.shape)}, but needs {wanted}")
    return num_rows
