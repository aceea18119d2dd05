"""Fake kernels: the shapes of results, and what the real kernels say of arguments that do not fit.

Sizes may be symbols here, so conditions go to torch._check_value, one at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ._arguments import Window, check_dtype

Tensors = tuple[Tensor, Tensor | None]


def permute(
    tokens: Tensor, indices: Tensor, probs: Tensor | None, ep_range: Window
) -> tuple[Tensor, Tensor, Tensor | None]:
    _needs_dtypes(tokens=tokens, indices=indices, probs=probs)
    _needs_shape("tokens", tokens, None, None)
    _needs_shape("indices", indices, tokens.shape[0], None)
    _needs(indices.shape[1] >= 1, "indices", list(indices.shape), "at least one expert per token")
    num_slots = indices.numel()
    num_rows = num_slots if ep_range is None else _rows_of_window(ep_range, num_slots)
    permuted_tokens = tokens.new_empty((num_rows, tokens.shape[1]))
    sorted_indices = indices.new_empty((num_slots,), dtype=torch.int32)
    if probs is None:
        return permuted_tokens, sorted_indices, None
    _needs_shape("probs", probs, *indices.shape)
    return permuted_tokens, sorted_indices, probs.new_empty((num_rows,))


def permute_grad(
    rows_grad: Tensor,
    sorted_indices: Tensor,
    probs_grad: Tensor | None,
    top_k: int,
    ep_range: Window,
) -> Tensors:
    _needs_dtypes(
        permuted_tokens_grad=rows_grad,
        sorted_indices=sorted_indices,
        permuted_probs_grad=probs_grad,
    )
    _needs_shape("permuted_tokens_grad", rows_grad, None, None)
    num_tokens = _tokens_of_slots(sorted_indices, top_k)
    num_rows, num_slots = rows_grad.shape[0], sorted_indices.shape[0]
    _needs_rows("permuted_tokens_grad", num_rows, ep_range, num_slots)
    tokens_grad = rows_grad.new_empty((num_tokens, rows_grad.shape[1]))
    if probs_grad is None:
        return tokens_grad, None
    _needs_shape("permuted_probs_grad", probs_grad, None)
    _needs_rows("permuted_probs_grad", probs_grad.shape[0], ep_range, num_slots)
    if ep_range is None:
        wanted = f"at least {num_rows}, those of permuted_tokens_grad"
        num_probs = probs_grad.shape[0]
        _needs(num_probs >= num_rows, "permuted_probs_grad", f"{num_probs} rows", wanted)
    return tokens_grad, probs_grad.new_empty((num_tokens, top_k))


def unpermute(
    rows: Tensor, sorted_indices: Tensor, probs: Tensor | None, top_k: int, ep_range: Window
) -> Tensor:
    _needs_dtypes(permuted_tokens=rows, sorted_indices=sorted_indices, probs=probs)
    _needs_shape("permuted_tokens", rows, None, None)
    num_tokens = _tokens_of_slots(sorted_indices, top_k)
    _needs_rows("permuted_tokens", rows.shape[0], ep_range, sorted_indices.shape[0])
    if probs is not None:
        _needs_shape("probs", probs, num_tokens, top_k)
    return rows.new_empty((num_tokens, rows.shape[1]))


def unpermute_grad(
    tokens_grad: Tensor,
    sorted_indices: Tensor,
    rows: Tensor | None,
    probs: Tensor | None,
    top_k: int,
    ep_range: Window,
    num_rows: int,
) -> Tensors:
    _needs_dtypes(
        tokens_grad=tokens_grad, sorted_indices=sorted_indices, permuted_tokens=rows, probs=probs
    )
    num_tokens = _tokens_of_slots(sorted_indices, top_k)
    _needs_shape("tokens_grad", tokens_grad, num_tokens, None)
    if probs is not None:
        _needs_shape("probs", probs, num_tokens, top_k)
    if rows is not None:
        wanted = f"{tokens_grad.dtype}, that of tokens_grad"
        _needs(rows.dtype == tokens_grad.dtype, "permuted_tokens", rows.dtype, wanted)
        _needs_shape("permuted_tokens", rows, None, tokens_grad.shape[1])
    num_slots = sorted_indices.shape[0]
    window = ep_range or (0, torch.sym_min(num_rows, num_slots))
    if rows is not None:
        num_rows = rows.shape[0]
    _needs_rows("permuted_tokens_grad", num_rows, window, num_slots)
    rows_grad = tokens_grad.new_empty((num_rows, tokens_grad.shape[1]))
    if rows is None or probs is None:
        return rows_grad, None
    return rows_grad, probs.new_empty(probs.shape)


# --- checks ---------------------------------------------------------------------------------------


def _needs(holds: Any, name: str, got: Any, wanted: str) -> None:
    torch._check_value(holds, lambda: f"{name}: {got}, but needs {wanted}")


def _needs_dtypes(**tensors: Tensor | None) -> None:
    """Check all: float64 goes with float64 only."""
    given = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    for name, tensor in given.items():
        check_dtype(name, tensor)
    floats = {name: t.dtype for name, t in given.items() if t.dtype.is_floating_point}
    main, first = next(iter(floats.items()))
    for name, dtype in floats.items():
        mixed = (dtype == torch.float64) != (first == torch.float64)
        _needs(not mixed, name, dtype, f"float64 with float64 only, and {main} is {first}")


def _needs_shape(name: str, tensor: Tensor, *sizes: int | None) -> None:
    """ValueError unless the tensor has these sizes; None stands for any."""
    wanted = ", ".join("any" if size is None else str(size) for size in sizes)
    complaint = name, f"shape {list(tensor.shape)}", f"[{wanted}]"
    _needs(tensor.dim() == len(sizes), *complaint)
    for got, size in zip(tensor.shape, sizes, strict=True):
        if size is not None:
            _needs(got == size, *complaint)


def _tokens_of_slots(sorted_indices: Tensor, top_k: int) -> int:
    _needs_shape("sorted_indices", sorted_indices, None)
    _needs(top_k >= 1, "top_k", top_k, "at least 1")
    num_slots = sorted_indices.shape[0]
    _needs(num_slots % top_k == 0, "sorted_indices", f"{num_slots} slots", f"a multiple of {top_k}")
    return num_slots // top_k


def _rows_of_window(ep_range: Sequence[int], num_slots: int) -> int:
    begin, end = ep_range
    for fits in (begin >= 0, end >= begin, end <= num_slots):
        wanted = f"0 <= begin <= end <= {num_slots}, the number of slots"
        _needs(fits, "ep_range", f"[{begin}, {end})", wanted)
    return end - begin


def _needs_rows(name: str, rows: int, ep_range: Window, num_slots: int) -> None:
    """Check the window, if there is one, and that it has its rows."""
    if ep_range is not None:
        needed = _rows_of_window(ep_range, num_slots)
        _needs(rows >= needed, name, f"{rows} rows", f"at least {needed}, those of ep_range")
