"""What the arguments of the two functions may be, and what is said of others."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ._operator import AUTOGRAD, DIRECT, road_of

Window = tuple[int, int] | None

_STRIDED = torch.strided
_NAMES_OF_INDICES = ("indices", "sorted_indices")
_FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
_INDICES = (torch.int32, torch.int64)
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def checked(names: tuple[str, str, str], *tensors: Any) -> int:
    """Give the road of a call with these: tensors of the right kinds. Only probs may be None."""
    road = road_of(*tensors)
    if road not in (AUTOGRAD, DIRECT):  # which ask for as much
        _look_closer(dict(zip(names, tensors, strict=True)))
    return road


def _look_closer(tensors: dict[str, Any]) -> None:
    """Find what is wrong with the tensors, if anything is."""
    main, first = next(iter(tensors.items()))
    device = _tensor(main, first).device
    for name, argument in tensors.items():
        if argument is None and name == "probs":
            continue
        tensor = _tensor(name, argument)
        if tensor.device != device:
            raise ValueError(f"{name}: on {tensor.device}, but {main} is on {device}")


def _tensor(name: str, tensor: Any) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name}: {type(tensor).__name__}, but needs a torch.Tensor")
    check_dtype(name, tensor)
    if tensor.is_nested:
        raise ValueError(f"{name}: a nested tensor, but needs one of a single shape")
    if tensor.layout is not _STRIDED:
        raise ValueError(f"{name}: layout {tensor.layout}, but needs torch.strided")
    if not tensor.is_cpu and not tensor.is_meta:
        raise ValueError(f"{name}: on {tensor.device}, but needs a tensor on cpu")
    return tensor


def check_dtype(name: str, tensor: Tensor) -> None:
    """TypeError unless the dtype is one that an argument of this name may have."""
    allowed = _INDICES if name in _NAMES_OF_INDICES else _FLOATS
    if tensor.dtype not in allowed:
        wanted = ", ".join(str(dtype) for dtype in allowed)
        gradient = " that requires_grad" if tensor.requires_grad else ""
        raise TypeError(f"{name}: {tensor.dtype}{gradient}, but needs one of {wanted}")


def as_column(tensor: Tensor | None) -> Tensor | None:
    """Make [T, 1] of [T]."""
    return tensor.unsqueeze(1) if tensor is not None and tensor.dim() == 1 else tensor


# --- integers -------------------------------------------------------------------------------------


def window_of(ep_range: Sequence[int] | Tensor) -> Window:
    if isinstance(ep_range, Tensor):
        ep_range = _list_of(ep_range)
    begin, end = _two("ep_range", ep_range, "(begin, end)")
    if torch.compiler.is_compiling():  # which makes a graph for one window of what looks closer
        return begin, end
    return _as_int("ep_range", begin), _as_int("ep_range", end)


def _list_of(ep_range: Tensor) -> list[int]:
    if ep_range.dtype not in _INDICES:
        raise TypeError(f"ep_range: {ep_range.dtype}, but needs torch.int32 or torch.int64")
    if ep_range.dim() != 1:
        raise ValueError(f"ep_range: shape {list(ep_range.shape)}, but needs [2]")
    return ep_range.tolist()


def _two(name: str, values: Any, wanted: str) -> Any:
    try:
        size = len(values)
    except TypeError:
        size = None
    if size is None or isinstance(values, (set, frozenset, dict)):  # which have no order
        raise TypeError(f"{name}: {type(values).__name__}, but needs {wanted}")
    if size != 2:
        raise ValueError(f"{name}: {size} numbers, but needs {wanted}")
    return values


def _as_int(name: str, value: Any) -> int:
    if isinstance(value, torch.SymInt):
        return value  # type: ignore[return-value]
    number = value if type(value) is int else _index(name, value)
    if not _INT64_MIN <= number <= _INT64_MAX:
        raise ValueError(f"{name}: {number}, but needs an int of 64 bits")
    return number


def _index(name: str, value: Any) -> int:
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise TypeError(f"{name}: {type(value).__name__}, but needs an int")


def window_of_first(num_out_tokens: int, window: Window, indices: Tensor) -> Window:
    if window is not None:
        raise ValueError("num_out_tokens: given together with ep_range, but needs one of the two")
    num_out_tokens = _as_int("num_out_tokens", num_out_tokens)
    if num_out_tokens < 1:
        raise ValueError(f"num_out_tokens: {num_out_tokens}, but needs at least 1 (None keeps all)")
    return 0, torch.sym_min(num_out_tokens, indices.numel())


def top_k_of(
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    probs: Tensor | None,
    restore_shape: Sequence[int] | None,
) -> int:
    """K from the probs, else from restore_shape, else 1; the two must not contradict each other."""
    if restore_shape is None:
        return 1 if probs is None else probs.shape[-1]
    num_tokens = _num_tokens(restore_shape, permuted_tokens)
    if probs is None:
        return _slots_per_token(sorted_indices.numel(), num_tokens)
    if probs.shape[0] != num_tokens:
        raise ValueError(f"restore_shape: {num_tokens} tokens, but probs has {probs.shape[0]}")
    return probs.shape[-1]


def _num_tokens(restore_shape: Sequence[int], permuted_tokens: Tensor) -> int:
    num_tokens, hidden_size = _two("restore_shape", restore_shape, "(num_tokens, hidden_size)")
    if permuted_tokens.dim() == 2 and hidden_size != permuted_tokens.shape[1]:
        got = permuted_tokens.shape[1]
        raise ValueError(f"restore_shape: hidden size {hidden_size}, but permuted_tokens has {got}")
    return _as_int("restore_shape", num_tokens)


def _slots_per_token(num_slots: int, num_tokens: int) -> int:
    if num_tokens == 0 and num_slots == 0:
        return 1
    if num_tokens < 1 or num_slots < num_tokens or num_slots % num_tokens != 0:
        raise ValueError(
            f"restore_shape: {num_tokens} tokens, but needs a divisor of the {num_slots} slots"
        )
    return num_slots // num_tokens
